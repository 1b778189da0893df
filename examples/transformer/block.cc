// One layer: attention and a multi-layer perceptron, each added to the residual stream.
#include <utility>

#include "compute.h"
#include "sequences.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

// Indices in the order of block_weights().
enum : std::size_t { kNorm1, kQuery, kKey, kValue, kOut, kNorm2, kUp, kDown, kGate };

void add(std::span<float> target, std::span<const float> more) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] += more[i];
  }
}

}  // namespace

Block::Block(const Groups& groups, const Local& local) : groups_(groups), local_(local) {
  const Config& config = local.config;
  share_ = up::head_share(config.heads, config.key_value_heads, groups.tp.size(), groups.tp.rank(),
                          true);
  shape_ = {.batch = local.batch,
            .heads = share_.query.count,
            .key_value_heads = share_.key_value.count,
            .dim = config.head_dim(),
            .heads_per_key = share_.heads_per_key,
            .offset = share_.offset};
  if (local.layout.same_bits) {
    shape_.key_value_heads = shape_.heads;
    shape_.heads_per_key = 0;
    shape_.offset = 0;
  }
}

std::vector<float> Block::repeated(std::span<const float> keys) const {
  const std::size_t row = share_.key_value.count * shape_.dim;
  std::vector<float> out;
  for (std::size_t at = 0; at < keys.size(); at += row) {
    for (std::size_t head = 0; head < shape_.heads; ++head) {
      const auto from = keys.subspan(at + share_.key_value_of(head) * shape_.dim, shape_.dim);
      out.insert(out.end(), from.begin(), from.end());
    }
  }
  return out;
}

void Block::rotate_rows(std::span<float> x, float direction) const {
  if (local_.config.llama) {
    rotate(x, local_.rows(), local_.positions, shape_.dim, direction);
  }
}

template <typename Span>
Span Block::rows_of_head(Span weight, std::size_t head) const {
  const std::size_t size = shape_.dim * local_.config.width;
  return own_rows(weight).subspan(share_.key_value_of(head) * size, size);
}

std::span<const float> Block::own_rows(std::span<const float> weight) const {
  const std::size_t row = local_.config.head_dim() * local_.config.width;
  const bool is_whole = weight.size() == local_.config.key_value_heads * row;
  return is_whole ? weight.subspan(share_.key_value.first * row, share_.key_value.count * row)
                  : weight;
}

std::span<float> Block::own_rows(std::span<float> weight) const {
  const std::span<const float> own = own_rows(std::span<const float>(weight));
  return weight.subspan(static_cast<std::size_t>(own.data() - weight.data()), own.size());
}

std::vector<float> Block::attention(const Unit& unit, Kept& kept) {
  const std::size_t rows = local_.rows();
  const auto region = local_.region(local_.config.width);
  std::vector<float> normal(kept.x.size());
  rms_norm(kept.x, unit.weight(kNorm1), normal);
  kept.attention_in.resize(rows * region.width);
  up::enter_region(groups_.tp, region, normal, kept.attention_in);
  kept.q.resize(rows * shape_.heads * shape_.dim);
  kept.k.resize(rows * share_.key_value.count * shape_.dim);
  kept.v.resize(kept.k.size());
  const bool same_bits = local_.layout.same_bits;
  linear(kept.attention_in, unit.weight(kQuery), kept.q, rows, same_bits);
  linear(kept.attention_in, own_rows(unit.weight(kKey)), kept.k, rows, same_bits);
  linear(kept.attention_in, own_rows(unit.weight(kValue)), kept.v, rows, same_bits);
  rotate_rows(kept.q, 1);
  rotate_rows(kept.k, 1);
  if (same_bits) {
    kept.k = repeated(kept.k);
    kept.v = repeated(kept.v);
  }
  kept.attended.resize(kept.q.size());
  kept.log_sum.resize(rows * shape_.heads);
  up::context_attention(groups_.context, shape_, local_.config.length, attention_kernel(), kept.q,
                        kept.k, kept.v, kept.attended, kept.log_sum);
  std::vector<float> out(kept.x.size());
  leave(groups_, local_, kept.attended, unit.weight(kOut), local_.config.heads, out);
  return out;
}

std::vector<float> Block::attention_backward(const Unit& unit, Kept& kept,
                                             std::span<const float> gradient) {
  const std::size_t rows = local_.rows();
  const auto region = local_.region(local_.config.width);
  kept.dout.resize(rows * region.width);
  up::leave_region_backward(groups_.tp, region, gradient, kept.dout);
  std::vector<float> dattended(kept.attended.size());
  const bool same_bits = local_.layout.same_bits;
  linear_backward_input(unit.weight(kOut), kept.dout, dattended, rows, false, same_bits);
  kept.dq.resize(kept.q.size());
  kept.dk.resize(kept.k.size());
  kept.dv.resize(kept.v.size());
  up::context_attention_backward(groups_.context, shape_, local_.config.length, attention_kernel(),
                                 kept.q, kept.k, kept.v, kept.attended, kept.log_sum, dattended,
                                 {.query = kept.dq, .key = kept.dk, .value = kept.dv});
  rotate_rows(kept.dq, -1);
  rotate_rows(kept.dk, -1);
  std::vector<float> dnormal(kept.x.size());
  if (same_bits) {
    enter_backward(
        groups_, local_, local_.config.heads,
        [&](std::size_t head, std::vector<in_order::Term>& terms) {
          const std::size_t features = shape_.heads * shape_.dim;
          const std::size_t first = head * shape_.dim;
          const auto query = unit.weight(kQuery).subspan(first * region.width);
          const auto add_term = [&](std::span<const float> dy, std::span<const float> w) {
            terms.push_back({.a = {dy.data() + first, features, 1},
                             .b = {w.data(), region.width, 1},
                             .depth = shape_.dim,
                             .ends_block = false});
          };
          add_term(kept.dq, query);
          add_term(kept.dk, rows_of_head(unit.weight(kKey), head));
          add_term(kept.dv, rows_of_head(unit.weight(kValue), head));
          terms.back().ends_block = true;
        },
        dnormal);
  } else {
    std::vector<float> din(kept.attention_in.size());
    linear_backward_input(unit.weight(kQuery), kept.dq, din, rows, false);
    linear_backward_input(own_rows(unit.weight(kKey)), kept.dk, din, rows, true);
    linear_backward_input(own_rows(unit.weight(kValue)), kept.dv, din, rows, true);
    up::enter_region_backward(groups_.tp, region, din, dnormal);
  }
  std::vector<float> dx(kept.x.size());
  rms_norm_backward(kept.x, unit.weight(kNorm1), dnormal, dx,
                    gain_gradient(local_, unit.gradient(kNorm1), kept.dnorm1, dx.size()));
  return dx;
}

std::vector<float> Block::mlp(const Unit& unit, Kept& kept) {
  const std::size_t rows = local_.rows();
  const auto region = local_.region(local_.config.width);
  std::vector<float> normal(kept.middle.size());
  rms_norm(kept.middle, unit.weight(kNorm2), normal);
  kept.mlp_in.resize(rows * region.width);
  up::enter_region(groups_.tp, region, normal, kept.mlp_in);
  kept.hidden.resize(rows * (unit.weight(kUp).size() / region.width));
  linear(kept.mlp_in, unit.weight(kUp), kept.hidden, rows, local_.layout.same_bits);
  kept.active.resize(kept.hidden.size());
  if (local_.config.llama) {
    kept.gate.resize(kept.hidden.size());
    linear(kept.mlp_in, unit.weight(kGate), kept.gate, rows, local_.layout.same_bits);
    gated(kept.gate, kept.hidden, kept.active);
  } else {
    gelu(kept.hidden, kept.active);
  }
  std::vector<float> out(kept.middle.size());
  leave(groups_, local_, kept.active, unit.weight(kDown), local_.config.parts, out);
  return out;
}

std::vector<float> Block::mlp_backward(const Unit& unit, Kept& kept,
                                       std::span<const float> gradient) {
  const std::size_t rows = local_.rows();
  const auto region = local_.region(local_.config.width);
  kept.ddown.resize(rows * region.width);
  up::leave_region_backward(groups_.tp, region, gradient, kept.ddown);
  std::vector<float> dactive(kept.active.size());
  linear_backward_input(unit.weight(kDown), kept.ddown, dactive, rows, false,
                        local_.layout.same_bits);
  kept.dhidden.resize(kept.hidden.size());
  std::vector<Flow> flows = {{.w = unit.weight(kUp), .dy = kept.dhidden}};
  if (local_.config.llama) {
    kept.dgate.resize(kept.hidden.size());
    gated_backward(kept.gate, kept.hidden, dactive, kept.dgate, kept.dhidden);
    flows.push_back({.w = unit.weight(kGate), .dy = kept.dgate});
  } else {
    gelu_backward(kept.hidden, dactive, kept.dhidden);
  }
  std::vector<float> dnormal(kept.middle.size());
  enter_backward(groups_, local_, flows, local_.config.parts, dnormal);
  std::vector<float> dx(kept.middle.size());
  rms_norm_backward(kept.middle, unit.weight(kNorm2), dnormal, dx,
                    gain_gradient(local_, unit.gradient(kNorm2), kept.dnorm2, dx.size()));
  return dx;
}

std::vector<float> Block::forward(const Unit& unit, std::vector<float> x, int microbatch) {
  Kept& kept = kept_[microbatch];
  kept.x = std::move(x);
  kept.middle = attention(unit, kept);
  add(kept.middle, kept.x);
  std::vector<float> out = mlp(unit, kept);
  add(out, kept.middle);
  return out;
}

std::vector<float> Block::backward_input(const Unit& unit, std::vector<float> gradient,
                                         int microbatch) {
  Kept& kept = kept_.at(microbatch);
  add(gradient, mlp_backward(unit, kept, gradient));
  add(gradient, attention_backward(unit, kept, gradient));
  // Frees everything that the gradients of the weights do not need.
  for (std::vector<float>* done : {&kept.x, &kept.q, &kept.k, &kept.v, &kept.log_sum, &kept.middle,
                                   &kept.hidden, &kept.gate}) {
    std::vector<float>().swap(*done);
  }
  return gradient;
}

// Returns the factors of key and value heads, which several query heads may share.
Factors Block::key_factors(const Kept& kept, std::span<const float> dy,
                           std::span<float> gradient) const {
  Factors factors{.x = kept.attention_in, .dy = dy, .gradient = own_rows(gradient)};
  if (local_.layout.same_bits) {
    factors.is_shared = factors.gradient.size() != gradient.size();
    factors.gradient = gradient;
    for (std::size_t head = 0; head < shape_.heads; ++head) {
      factors.heads.push_back(rows_of_head(gradient, head));
    }
  }
  return factors;
}

void Block::backward_weight(const Unit& unit, int microbatch, const LeafReady& leaf_ready) {
  const Kept kept = std::move(kept_.at(microbatch));
  kept_.erase(microbatch);
  std::vector<Factors> factors = {
      {.x = kept.active, .dy = kept.ddown, .gradient = unit.gradient(kDown)},
      {.x = kept.mlp_in, .dy = kept.dhidden, .gradient = unit.gradient(kUp)},
      {.x = kept.attended, .dy = kept.dout, .gradient = unit.gradient(kOut)},
      {.x = kept.attention_in, .dy = kept.dq, .gradient = unit.gradient(kQuery)},
      key_factors(kept, kept.dk, unit.gradient(kKey)),
      key_factors(kept, kept.dv, unit.gradient(kValue))};
  if (local_.config.llama) {
    factors.push_back({.x = kept.mlp_in, .dy = kept.dgate, .gradient = unit.gradient(kGate)});
  }
  add_gradients(groups_, local_, factors,
                {{.rows = kept.dnorm1, .gradient = unit.gradient(kNorm1)},
                 {.rows = kept.dnorm2, .gradient = unit.gradient(kNorm2)}},
                leaf_ready);
}

}  // namespace transformer
