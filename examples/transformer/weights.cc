// Weights, their sharding, and their initial values.
#include <random>

#include "model.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

up::Tensor tensor_of(const Weight& weight, std::span<const float> whole) {
  return up::Tensor::of_const(whole, {weight.rows, weight.columns});
}

up::Placement placement(const Weight& weight) {
  return weight.cut == Weight::Cut::none ? up::Replicate()
                                         : up::Shard(weight.cut == Weight::Cut::rows ? 0 : 1);
}

// Returns the part of a tensor that a rank holds.
up::Tensor part_of(const Weight& weight, const up::Tensor& whole, int ranks, int rank) {
  if (weight.cut == Weight::Cut::none) {
    return whole;
  }
  const std::size_t dim = placement(weight).dim;
  const up::Range range = up::shard_range(whole.shape[dim], ranks, rank);
  return whole.slice(dim, range.first, range.count);
}

constexpr float kDeviation = 0.02F;

}  // namespace

std::vector<Weight> embedding_weights(const Config& config, const Layout& layout) {
  return {{.name = "embedding.weight",
           .rows = config.vocabulary,
           .columns = config.width,
           .cut = layout.vocabulary ? Weight::Cut::rows : Weight::Cut::none,
           .is_summed = layout.sequence && !layout.vocabulary && !layout.same_bits,
           .deviation = 1.0F}};
}

std::vector<Weight> block_weights(const Config& config, const Layout& layout, int tp,
                                  std::size_t layer) {
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const std::size_t keys = config.key_value_heads * config.head_dim();
  const bool shares_keys = static_cast<std::size_t>(tp) > config.key_value_heads;
  const auto norm = [&](const char* name) -> Weight {
    return {.name = prefix + name,
            .rows = config.width,
            .columns = 1,
            .is_summed = layout.sequence && !layout.same_bits};
  };
  const auto matrix = [&](const char* name, std::size_t rows, std::size_t columns,
                          Weight::Cut cut) -> Weight {
    return {.name = prefix + name,
            .rows = rows,
            .columns = columns,
            .cut = cut,
            .deviation = kDeviation};
  };
  Weight k = matrix("attention.k.weight", keys, config.width,
                    shares_keys ? Weight::Cut::none : Weight::Cut::rows);
  k.is_summed = shares_keys && !layout.same_bits;
  Weight v = k;
  v.name = prefix + "attention.v.weight";
  std::vector<Weight> all = {
      norm("attention.norm.weight"),
      matrix("attention.q.weight", config.width, config.width, Weight::Cut::rows),
      k,
      v,
      matrix("attention.o.weight", config.width, config.width, Weight::Cut::columns),
      norm("mlp.norm.weight"),
      matrix("mlp.up.weight", config.hidden, config.width, Weight::Cut::rows),
      matrix("mlp.down.weight", config.width, config.hidden, Weight::Cut::columns)};
  if (config.llama) {
    all.push_back(matrix("mlp.gate.weight", config.hidden, config.width, Weight::Cut::rows));
  }
  return all;
}

std::vector<Weight> head_weights(const Config& config, const Layout& layout) {
  return {{.name = "norm.weight",
           .rows = config.width,
           .columns = 1,
           .is_summed = layout.sequence && !layout.same_bits},
          {.name = "head.weight",
           .rows = config.vocabulary,
           .columns = config.width,
           .cut = layout.vocabulary ? Weight::Cut::rows : Weight::Cut::none,
           .is_summed = layout.sequence && !layout.vocabulary && !layout.same_bits,
           .deviation = kDeviation}};
}

std::vector<std::vector<Weight>> all_weights(const Config& config, const Layout& layout, int tp) {
  std::vector<std::vector<Weight>> all = {embedding_weights(config, layout)};
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    all.push_back(block_weights(config, layout, tp, layer));
  }
  all.push_back(head_weights(config, layout));
  return all;
}

std::size_t local_count(const Weight& weight, int ranks, int rank) {
  const up::Tensor whole =
      up::Tensor::packed(nullptr, unisono::Dtype::f32, {weight.rows, weight.columns});
  return part_of(weight, whole, ranks, rank).count();
}

std::vector<float> initial(const Weight& weight, std::uint64_t seed) {
  std::vector<float> values(weight.rows * weight.columns, 1.0F);
  if (weight.deviation == 0) {
    return values;
  }
  for (const char c : weight.name) {
    seed = seed * 1099511628211U + static_cast<unsigned char>(c);
  }
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, weight.deviation);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

std::vector<float> cut(const Weight& weight, std::span<const float> whole, int ranks, int rank) {
  std::vector<float> part(local_count(weight, ranks, rank));
  const up::Tensor from = part_of(weight, tensor_of(weight, whole), ranks, rank);
  up::copy(from, up::Tensor::of(part, from.shape));
  return part;
}

std::vector<float> join(const Weight& weight, std::span<const float> part,
                        unisono::Communicator& tp) {
  std::vector<float> whole(weight.rows * weight.columns);
  const up::Tensor out = up::Tensor::of(whole, {weight.rows, weight.columns});
  const std::vector<std::size_t> shape = part_of(weight, out, tp.size(), tp.rank()).shape;
  up::redistribute(tp, up::Tensor::of_const(part, shape), placement(weight), out, up::Replicate());
  return whole;
}

Unit::Unit(const std::vector<Weight>& list, int ranks, int rank, std::span<const float> weights,
           std::span<float> gradients)
    : first_{0}, weights_(weights), gradients_(gradients) {
  for (const Weight& weight : list) {
    first_.push_back(first_.back() + local_count(weight, ranks, rank));
  }
}

std::span<const float> Unit::weight(std::size_t index) const {
  return weights_.subspan(first_[index], first_[index + 1] - first_[index]);
}

std::span<float> Unit::gradient(std::size_t index) const {
  return gradients_.subspan(first_[index], first_[index + 1] - first_[index]);
}

}  // namespace transformer
