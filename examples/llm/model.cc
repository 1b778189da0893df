#include "model.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <unisono/statistics.hpp>

namespace llm {
namespace {

namespace up = unisono::parallel;

// Number of parts of in-order sums over the hidden features.
constexpr std::size_t kHiddenBlocks = 32;

up::Range whole(std::size_t count) {
  return {.first = 0, .count = count};
}

}  // namespace

// Adds the time of a scope to a sum.
class Model::Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Model::Model(up::Mesh& mesh, const Weights& weights, Precision precision)
    : mesh_(mesh),
      weights_(weights),
      shape_(weights.shape()),
      in_order_(precision == Precision::f32_in_order) {
  unisono::Communicator& tp = mesh_.axis("tp");
  share_ = up::head_share(shape_.heads, shape_.key_value_heads, tp.size(), tp.rank());
  heads_cut_ = cut_heads();
  hidden_cut_ = cut_hidden();
  hidden_ = in_order_ ? hidden_cut_.range(tp.rank())
                      : up::shard_range(shape_.hidden, tp.size(), tp.rank());
  words_ = up::shard_range(shape_.vocabulary, tp.size(), tp.rank());
  layers_range_ = up::shard_range(shape_.layers, mesh_.size("pp"), mesh_.coordinate("pp"));
  if (mesh_.size("ep") > 1) {
    exchange_ = std::make_unique<unisono::ExpertExchange>(
        mesh_.axis("ep"), unisono::ExpertExchangeOptions{.experts = 2 * mesh_.size("ep"), .k = 2});
  }
  if (tp.size() > 1) {
    row_ = tp.allocate(shape_.width * sizeof(float));
    row_sum_ = tp.plan({.collective = unisono::Collective::all_reduce,
                        .in = row_.bytes().data(),
                        .out = row_.bytes().data(),
                        .count = shape_.width,
                        .dtype = unisono::Dtype::f32});
  }
  load(precision);
}

up::Range Model::CutInputs::range(int rank) const {
  const unisono::Leaves& mine = of_ranks[static_cast<std::size_t>(rank)];
  const std::size_t first = bounds[mine.first];
  return {.first = first, .count = bounds[mine.first + mine.count] - first};
}

Model::CutInputs Model::cut_heads() const {
  CutInputs cut;
  const int ranks = mesh_.size("tp");
  for (int rank = 0; rank < ranks; ++rank) {
    const up::Range heads = up::head_share(shape_.heads, shape_.key_value_heads, ranks, rank).query;
    cut.of_ranks.push_back({.first = heads.first, .count = heads.count});
  }
  for (std::size_t head = 0; head <= shape_.heads; ++head) {
    cut.bounds.push_back(head * shape_.dim);
  }
  return cut;
}

Model::CutInputs Model::cut_hidden() const {
  CutInputs cut{.of_ranks = unisono::even_leaves(kHiddenBlocks, mesh_.size("tp")), .bounds = {}};
  for (std::size_t block = 0; block <= kHiddenBlocks; ++block) {
    cut.bounds.push_back(shape_.hidden * block / kHiddenBlocks);
  }
  return cut;
}

void Model::load(Precision precision) {
  const auto vector = [&](const std::string& name, std::size_t count) {
    return weights_.read(name, whole(1), whole(count));
  };
  const auto heads = [&](up::Range range) {
    return up::Range{.first = range.first * shape_.dim, .count = range.count * shape_.dim};
  };
  if (mesh_.coordinate("pp") == mesh_.size("pp") - 1) {
    norm_ = vector("output_norm.weight", shape_.width);
    output_ =
        Matrix(weights_.read(weights_.has("output.weight") ? "output.weight" : "token_embd.weight",
                             words_, whole(shape_.width)),
               words_.count, precision, arena_);
  }
  for (std::size_t i = 0; i < layers_range_.count; ++i) {
    const std::string prefix = "blk." + std::to_string(layers_range_.first + i) + ".";
    const auto matrix = [&](const char* name, up::Range rows, up::Range columns) {
      return Matrix(weights_.read(prefix + name + ".weight", rows, columns), rows.count, precision,
                    arena_);
    };
    Layer& layer = layers_.emplace_back();
    layer.attention_norm = vector(prefix + "attn_norm.weight", shape_.width);
    layer.mlp_norm = vector(prefix + "ffn_norm.weight", shape_.width);
    layer.q = matrix("attn_q", heads(share_.query), whole(shape_.width));
    layer.k = matrix("attn_k", heads(share_.key_value), whole(shape_.width));
    layer.v = matrix("attn_v", heads(share_.key_value), whole(shape_.width));
    layer.o = matrix("attn_output", whole(shape_.width), heads(share_.query));
    layer.gate = matrix("ffn_gate", hidden_, whole(shape_.width));
    layer.up = matrix("ffn_up", hidden_, whole(shape_.width));
    layer.down = matrix("ffn_down", whole(shape_.width), hidden_);
    if (shape_.is_gemma) {
      layer.q_norm = vector(prefix + "attn_q_norm.weight", shape_.dim);
      layer.k_norm = vector(prefix + "attn_k_norm.weight", shape_.dim);
      layer.after_attention = vector(prefix + "post_attention_norm.weight", shape_.width);
      layer.after_mlp = vector(prefix + "post_ffw_norm.weight", shape_.width);
    }
    if (exchange_ != nullptr) {
      const up::Range experts = whole(2 * static_cast<std::size_t>(mesh_.size("ep")));
      layer.router = Matrix(
          random_weights(layers_range_.first + i)->read("router", experts, whole(shape_.width)),
          experts.count, Precision::f32, arena_);
    }
  }
}

std::size_t Model::weight_bytes() const {
  std::size_t bytes = output_.bytes() + norm_.size() * sizeof(float);
  for (const Layer& layer : layers_) {
    for (const auto* part : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up,
                             &layer.down, &layer.router}) {
      bytes += part->bytes();
    }
    for (const auto* part : {&layer.attention_norm, &layer.mlp_norm, &layer.after_attention,
                             &layer.after_mlp, &layer.q_norm, &layer.k_norm}) {
      bytes += part->size() * sizeof(float);
    }
  }
  return bytes;
}

void Model::clear() {
  length_ = 0;
  cached_.clear();
  for (Layer& layer : layers_) {
    layer.keys.clear();
    layer.values.clear();
  }
}

// Returns the seconds spent waiting for other ranks since the mesh was created.
double Model::waited() const {
  double sum = 0;
  for (const char* axis : {"pp", "cp", "tp"}) {
    for (const unisono::Statistics::Row& row : mesh_.axis(axis).statistics().rows) {
      sum += row.waiting_s;
    }
  }
  return sum;
}

// Resizes the buffers for a call with `rows` rows.
void Model::prepare(std::size_t rows) {
  x_.assign(rows * shape_.width, 0.0F);
  normal_.assign(x_.size(), 0.0F);
  if (rows == 1 && row_sum_) {
    given_ = {reinterpret_cast<float*>(row_.bytes().data()), shape_.width};
  } else {
    many_.resize(x_.size());
    given_ = many_;
  }
  Rope rope{.base = shape_.rope_base, .dim = shape_.dim, .halves = shape_.rope_halves};
  turns_ = turns_of(rope, positions_);
  if (shape_.pattern != 0) {
    rope.base = shape_.window_rope_base;
    window_turns_ = turns_of(rope, positions_);
  }
}

void Model::sum_over_tp() {
  if (mesh_.size("tp") == 1) {
    return;
  }
  const Timed timed(times_.communication);
  if (positions_.size() == 1) {
    row_sum_->start();
  } else {
    mesh_.axis("tp").all_reduce(given_, unisono::sum);
  }
}

// Adds the results of the tp ranks to x. Normalises x for the next layer, if this rank has that
// layer.
void Model::add_given(std::span<const float> after, std::span<const float> norm) {
  if (!in_order_) {
    sum_over_tp();
  }
  if (!after.empty()) {
    rms_norm(given_, after, shape_.epsilon, given_);
  }
  if (norm.empty()) {
    std::ranges::transform(given_, x_, x_.begin(), std::plus());
  } else {
    add_and_norm(given_, x_, norm, shape_.epsilon, normal_);
  }
}

void Model::multiply_cut(const Matrix& matrix, const CutInputs& inputs, std::span<const float> in,
                         std::size_t rows, std::span<float> out) {
  if (!in_order_) {
    matrix.times(in, out, rows);
    return;
  }
  unisono::Communicator& tp = mesh_.axis("tp");
  const std::size_t all = inputs.bounds.size() - 1;
  const unisono::Leaves& mine = inputs.of_ranks[static_cast<std::size_t>(tp.rank())];
  unisono::TreeSum sum({.count = out.size(), .leaves = all, .first = mine.first});
  std::vector<float> part(tp.size() == 1 ? 0 : out.size());
  for (const unisono::Leaves& node : unisono::subtrees(all, mine)) {
    std::vector<std::size_t> ends;
    for (std::size_t block = 0; block < node.count; ++block) {
      ends.push_back(inputs.bounds[node.first + block + 1] - inputs.bounds[node.first]);
    }
    const Matrix::Blocks blocks{.first = inputs.bounds[node.first] - inputs.bounds[mine.first],
                                .ends = ends};
    if (tp.size() == 1) {
      matrix.times(in, out, rows, blocks);
      return;
    }
    matrix.times(in, part, rows, blocks);
    sum.add(node, part.data());
  }
  const Timed timed(times_.communication);
  sum.all_reduce(tp, inputs.of_ranks, out.data());
}

void Model::embed(std::span<const std::int32_t> tokens) {
  std::ranges::fill(given_, 0.0F);
  for (std::size_t row = 0; row < positions_.size(); ++row) {
    const auto token = static_cast<std::size_t>(tokens[positions_[row] - length_]);
    if (token >= words_.first && token < words_.first + words_.count) {
      std::ranges::copy(
          weights_.read("token_embd.weight", {.first = token, .count = 1}, whole(shape_.width)),
          given_.begin() + static_cast<std::ptrdiff_t>(row * shape_.width));
    }
  }
  sum_over_tp();
  const float scale = shape_.is_gemma ? std::sqrt(static_cast<float>(shape_.width)) : 1.0F;
  std::ranges::transform(given_, x_.begin(), [scale](float value) { return scale * value; });
}

void Model::attention(Layer& layer, std::size_t number) {
  const std::size_t rows = positions_.size();
  std::vector<float> q(rows * share_.query.count * shape_.dim);
  std::vector<float> k(rows * share_.key_value.count * shape_.dim);
  std::vector<float> v(k.size());
  layer.q.times(normal_, q, rows);
  layer.k.times(normal_, k, rows);
  layer.v.times(normal_, v, rows);
  if (shape_.is_gemma) {
    rms_norm(q, layer.q_norm, shape_.epsilon, q);
    rms_norm(k, layer.k_norm, shape_.epsilon, k);
  }
  const bool has_window = shape_.pattern != 0 && (number + 1) % shape_.pattern != 0;
  rotate(has_window ? window_turns_ : turns_, q);
  rotate(has_window ? window_turns_ : turns_, k);
  const std::vector<float> attended = attend(layer, has_window ? shape_.window : 0, q, k, v);
  multiply_cut(layer.o, heads_cut_, attended, rows, given_);
  add_given(layer.after_attention, layer.mlp_norm);
}

// Caches the keys and values of all cp ranks, in position order.
void Model::keep_all(Layer& layer, std::span<const float> k, std::span<const float> v) {
  if (mesh_.size("cp") == 1 || call_length_ == 1) {
    layer.keys.insert(layer.keys.end(), k.begin(), k.end());
    layer.values.insert(layer.values.end(), v.begin(), v.end());
    return;
  }
  unisono::Communicator& cp = mesh_.axis("cp");
  const std::size_t width = share_.key_value.count * shape_.dim;
  std::vector<std::size_t> places;
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < cp.size(); ++rank) {
    const auto positions =
        up::context_positions(up::ContextAxes{}.order, call_length_, cp.size(), rank);
    places.insert(places.end(), positions.begin(), positions.end());
    counts.push_back(positions.size() * width);
  }
  std::vector<float> all(call_length_ * width);
  for (auto [kept, own] : {std::pair(&layer.keys, k), std::pair(&layer.values, v)}) {
    const Timed timed(times_.communication);
    cp.all_gather_v(own, all, counts);
    const std::size_t begin = kept->size();
    kept->resize(begin + all.size());
    for (std::size_t row = 0; row < places.size(); ++row) {
      std::copy_n(&all[row * width], width, &(*kept)[begin + places[row] * width]);
    }
  }
}

// Computes attention. The rank that has a position caches its key and value; with in-order sums,
// all ranks do. A single token is on all cp ranks, which cache such tokens in turn.
std::vector<float> Model::attend(Layer& layer, std::size_t window, std::span<const float> q,
                                 std::span<const float> k, std::span<const float> v) {
  const up::AttentionShape shape{.heads = share_.query.count,
                                 .key_value_heads = share_.key_value.count,
                                 .dim = shape_.dim,
                                 .heads_per_key = share_.heads_per_key,
                                 .offset = share_.offset};
  const auto kernel = attention_kernel(window, in_order_);
  const auto cp = static_cast<std::size_t>(in_order_ ? 1 : mesh_.size("cp"));
  const bool is_cut = cp > 1 && call_length_ > 1;
  if (in_order_) {
    keep_all(layer, k, v);
  } else if (cp == 1 || is_cut ||
             length_ % cp == static_cast<std::size_t>(mesh_.coordinate("cp"))) {
    layer.keys.insert(layer.keys.end(), k.begin(), k.end());
    layer.values.insert(layer.values.end(), v.begin(), v.end());
  }
  std::vector<float> out(q.size());
  std::vector<float> log_sum(positions_.size() * shape.heads);
  if (is_cut) {
    const Timed timed(times_.communication);
    up::context_attention({.outer = &mesh_.axis("cp")}, shape, call_length_, kernel, q, k, v, out,
                          log_sum);
    return out;
  }
  kernel.forward({.shape = shape,
                  .query_positions = positions_,
                  .key_positions = cached_,
                  .query = q,
                  .key = layer.keys,
                  .value = layer.values},
                 out.data(), log_sum.data());
  if (cp > 1) {
    const Timed timed(times_.communication);
    up::merge_decoded(mesh_.axis("cp"), shape, out, log_sum);
  }
  return out;
}

void Model::dense(const Layer& layer, std::span<const float> in, std::size_t rows,
                  std::span<float> out) {
  std::vector<float> gate(rows * hidden_.count);
  std::vector<float> up(gate.size());
  layer.gate.times(in, gate, rows);
  layer.up.times(in, up, rows);
  gated(gate, up, shape_.is_gemma);
  multiply_cut(layer.down, hidden_cut_, gate, rows, out);
}

// Shards tokens over ep, sends each to two experts, and returns the results to all ep ranks. If tp
// shards experts, their results are partial sums, which are summed over tp after the exchange, like
// those of the dense MLP; with in-order sums, before the exchange.
void Model::experts(const Layer& layer, std::size_t rows) {
  unisono::Communicator& ep = mesh_.axis("ep");
  const up::Range mine = up::shard_range(rows, ep.size(), ep.rank());
  const std::size_t width = shape_.width;
  const auto tokens =
      std::span<const float>(normal_).subspan(mine.first * width, mine.count * width);
  const std::size_t count = layer.router.outputs();
  std::vector<float> scores(mine.count * count);
  layer.router.times(tokens, scores, mine.count);
  std::vector<std::int32_t> chosen;
  std::vector<float> weights;
  for (std::size_t t = 0; t < mine.count; ++t) {
    const auto row = std::span(scores).subspan(t * count, count);
    const auto first = std::ranges::max_element(row) - row.begin();
    const float most = row[static_cast<std::size_t>(first)];
    row[static_cast<std::size_t>(first)] = -std::numeric_limits<float>::infinity();
    const auto second = std::ranges::max_element(row) - row.begin();
    const float share =
        in_order_ ? 0.5F : 1 / (1 + std::exp(row[static_cast<std::size_t>(second)] - most));
    chosen.insert(chosen.end(),
                  {static_cast<std::int32_t>(first), static_cast<std::int32_t>(second)});
    weights.insert(weights.end(), {share, 1 - share});
  }
  double& sum = times_.communication;
  std::optional<Timed> timed(std::in_place, sum);
  const unisono::Routing routing = exchange_->route(std::span<const std::int32_t>(chosen));
  std::vector<float> came(routing.rows() * width);
  exchange_->dispatch(routing, {{.in = std::as_bytes(tokens),
                                 .out = std::as_writable_bytes(std::span(came)),
                                 .row_bytes = width * sizeof(float)}});
  timed.reset();
  std::vector<float> given(came.size());
  dense(layer, came, routing.rows(), given);
  timed.emplace(sum);
  std::vector<float> combined(tokens.size());
  exchange_->combine(routing, {.rows = std::as_bytes(std::span(given)),
                               .out = std::as_writable_bytes(std::span(combined)),
                               .dtype = unisono::Dtype::f32,
                               .hidden = width,
                               .weights = weights});
  up::redistribute(ep, up::Tensor::of(combined, {mine.count, width}), up::Shard(0),
                   up::Tensor::of(given_, {rows, width}), up::Replicate());
}

void Model::mlp(const Layer& layer, std::span<const float> next_norm) {
  if (exchange_ == nullptr) {
    dense(layer, normal_, positions_.size(), given_);
  } else {
    experts(layer, positions_.size());
  }
  add_given(layer.after_mlp, next_norm);
}

// Computes the FNV hash of the logits of all words.
void Model::hash(std::span<const float> logits) {
  unisono::Communicator& tp = mesh_.axis("tp");
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < tp.size(); ++rank) {
    counts.push_back(up::shard_range(shape_.vocabulary, tp.size(), rank).count);
  }
  std::vector<float> all(shape_.vocabulary);
  tp.all_gather_v(logits, all, counts);
  logit_bits_ = 0xCBF29CE484222325U;
  for (const float logit : all) {
    logit_bits_ = (logit_bits_ ^ std::bit_cast<std::uint32_t>(logit)) * 0x100000001B3U;
  }
}

// Returns the likeliest tokens. The cp rank that has the last token sends its row to the others.
std::vector<up::Candidate> Model::head(std::size_t count) {
  std::vector<float> last(shape_.width);
  const std::size_t wanted = length_ + call_length_ - 1;
  const auto found = std::ranges::find(positions_, wanted);
  if (found != positions_.end()) {
    const auto row = static_cast<std::size_t>(found - positions_.begin());
    std::ranges::copy(std::span(normal_).subspan(row * shape_.width, shape_.width), last.begin());
  }
  if (positions_.size() != call_length_ || mesh_.size("cp") > 1) {
    if (call_length_ > 1) {
      const Timed timed(times_.communication);
      mesh_.axis("cp").all_reduce(last, unisono::sum);  // other ranks have zeros
    }
  }
  std::vector<float> logits(words_.count);
  output_.times(last, logits, 1);
  if (in_order_) {
    hash(logits);
  }
  const Timed timed(times_.communication);
  return up::top_candidates(mesh_.axis("tp"), shape_.vocabulary, logits, count);
}

std::vector<up::Candidate> Model::append(std::span<const std::int32_t> tokens, std::size_t count) {
  if (tokens.empty() || (mesh_.size("cp") > 1 && length_ != 0 && tokens.size() > 1)) {
    throw std::invalid_argument("llm: after a prompt, tokens are appended one by one");
  }
  const Timed timed(times_.total);
  call_length_ = tokens.size();
  count = std::min(count, shape_.vocabulary);
  const bool is_cut = mesh_.size("cp") > 1 && call_length_ > 1;
  positions_.clear();
  if (is_cut) {
    positions_ = up::ContextAxes{.outer = &mesh_.axis("cp")}.positions(call_length_);
  } else {
    for (std::size_t i = 0; i < call_length_; ++i) {
      positions_.push_back(length_ + i);
    }
  }
  if (in_order_) {
    for (std::size_t i = 0; i < call_length_; ++i) {
      cached_.push_back(length_ + i);
    }
  } else if (mesh_.size("cp") == 1 || is_cut ||
             length_ % static_cast<std::size_t>(mesh_.size("cp")) ==
                 static_cast<std::size_t>(mesh_.coordinate("cp"))) {
    cached_.insert(cached_.end(), positions_.begin(), positions_.end());
  }
  const int stage = mesh_.coordinate("pp");
  const int last = mesh_.size("pp") - 1;
  unisono::Communicator& pp = mesh_.axis("pp");
  prepare(positions_.size());
  pp.label("embedding");
  if (stage == 0) {
    embed(tokens);
  } else {
    const Timed waiting(times_.communication);
    pp.recv(x_.data(), x_.size() * sizeof(float), stage - 1);
  }
  rms_norm(x_, layers_.empty() ? norm_ : layers_.front().attention_norm, shape_.epsilon, normal_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string layer = "layer " + std::to_string(layers_range_.first + i);
    pp.label(layer + " attention");  // names the calls in a recording
    attention(layers_[i], layers_range_.first + i);
    pp.label(layer + (exchange_ == nullptr ? " mlp" : " experts"));
    mlp(layers_[i], i + 1 < layers_.size() ? layers_[i + 1].attention_norm : norm_);
  }
  pp.label("head");
  std::vector<up::Candidate> best(count);
  if (stage == last) {
    best = head(count);
  } else {
    const Timed waiting(times_.communication);
    pp.send(x_.data(), x_.size() * sizeof(float), stage + 1);
  }
  if (last > 0) {
    const Timed waiting(times_.communication);
    pp.broadcast(std::as_writable_bytes(std::span(best)), last);
    if (in_order_) {
      pp.broadcast(std::as_writable_bytes(std::span(&logit_bits_, 1)), last);
    }
  }
  length_ += call_length_;
  times_.waiting = waited();
  return best;
}

}  // namespace llm
