#include "planner/memory.h"

#include <algorithm>
#include <cmath>

namespace unisono::planner {
namespace {

constexpr double kLogit = 4;                         // bytes: in bf16, with the gradient beside it
constexpr double kFrameworkBytes = 2.0 * (1 << 30);  // context, kernels, buffers of collectives

// Elements of a query with its key, and of a value, of all heads together.
double attention_elements(const ModelShape& shape) {
  const LatentAttention& latent = shape.latent;
  if (latent.is_used()) {
    const double query = latent.plain_dim + latent.rotary_dim;
    return shape.heads * 2 * (query + latent.value_dim);
  }
  return (2.0 * shape.heads + 2.0 * shape.kv_heads) * shape.head_dim;
}

}  // namespace

// Inputs of products are kept as they are multiplied; what enters norms, activation functions and
// attention stays bf16.
double kept_bytes(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  constexpr double kPlain = 2;
  const double tokens = local_tokens(layout, task);
  const double tp = layout.tp;
  const double share = layout.sequence_parallel ? tp : 1;
  if (layout.recompute == Recompute::full) {
    return tokens * shape.hidden * kPlain / share;
  }
  const double input = weight_bytes(task.precision);
  const bool is_selective = layout.recompute == Recompute::selective;
  const double made = shape.gated ? 2 : 1;  // what the activation function reads
  const double inner = made * kPlain + (is_selective ? 0 : input);
  // The output of attention is kept as it was made, and as it is multiplied.
  const double output =
      input < kPlain
          ? shape.heads * (shape.latent.is_used() ? shape.latent.value_dim : shape.head_dim) * input
          : 0;
  // The masks of two dropouts are counted only if the scores go through memory.
  const double masks = task.materialised_attention ? 2 : 0;
  const double norms = 2 * kPlain + (is_selective ? 0 : 2 * input);
  double wide = shape.ffn * inner;
  double rows = 0;
  if (shape.has_experts()) {
    wide = shape.shared_ffn * inner;
    rows = shape.experts_per_token / tp * (shape.hidden * input + shape.expert_ffn * inner);
  }
  double bytes = tokens * (shape.hidden * (norms + masks) / share +
                           (attention_elements(shape) * kPlain + output) / tp + wide / tp + rows);
  if (task.materialised_attention && layout.recompute == Recompute::none) {
    bytes += 5 * layout.micro_batch * shape.heads / tp * task.sequence * task.sequence /
             (layout.cp * layout.uly);
  }
  return bytes;
}

double stage_layers(const ModelShape& shape, const Layout& layout) {
  const double parts = static_cast<double>(layout.pp) * layout.vp;
  return layout.vp * std::ceil(shape.layers / parts);
}

// Compression weights are whole on all ranks of tp, and so are key-value heads that are
// fewer.
double local_attention_weights(const ModelShape& shape, double tp) {
  const LatentAttention& latent = shape.latent;
  if (!latent.is_used()) {
    const double kv_heads = tp > shape.kv_heads ? shape.kv_heads : shape.kv_heads / tp;
    return shape.hidden * shape.head_dim * (2 * shape.heads / tp + 2 * kv_heads);
  }
  const double down = shape.hidden * (latent.query_rank + latent.value_rank + latent.rotary_dim);
  return down + (attention_weights(shape) - down) / tp;
}

LocalWeights local_weights(const ModelShape& shape, const Layout& layout) {
  const double layers = stage_layers(shape, layout);
  const double with_experts = layers * shape.expert_layers() / shape.layers;
  const double router = shape.hidden * shape.experts;
  LocalWeights weights;
  weights.dense =
      layers * local_attention_weights(shape, layout.tp) +
      (layers - with_experts) * dense_weights(shape) / layout.tp +
      with_experts * (router + (shared_weights(shape) - router) / layout.tp) +
      shape.hidden * shape.vocabulary / layout.tp * (layout.pp == 1 && !shape.tied ? 2 : 1);
  weights.experts = with_experts * shape.experts * expert_weights(shape) / layout.ep;
  return weights;
}

MemoryParts training_memory(const ModelShape& shape, const Layout& layout,
                            const TrainingTask& task) {
  const LocalWeights weights = local_weights(shape, layout);
  const double dense_copies = layout.copies();
  const double expert_copies = static_cast<double>(layout.stage_ranks()) / layout.ep;
  const auto held = [&](double bytes, int stage) {
    const bool is_sharded = layout.zero >= stage;
    return bytes * (weights.dense / (is_sharded ? dense_copies : 1) +
                    weights.experts / (is_sharded ? expert_copies : 1));
  };
  MemoryParts parts;
  constexpr double kMaster = 4;
  parts.weights = held(2, 3);
  parts.gradients = held(weight_bytes_of(task.gradients), 2);
  parts.optimiser =
      layout.offload.optimiser ? 0 : held(kMaster + 2 * weight_bytes_of(task.moments), 1);

  const double count = microbatches(layout, task);
  const double layers = stage_layers(shape, layout);
  double in_flight = std::min<double>(layout.pp, count);
  if (layout.vp > 1) {
    in_flight *= 1 + (layout.pp - 1.0) / (static_cast<double>(layout.pp) * layout.vp);
  }
  // The activations of the current layer and of the one that is being copied stay.
  const double kept_layers = in_flight * layers;
  parts.activations = (layout.offload.activations ? std::min(2.0, kept_layers) : kept_layers) *
                      kept_bytes(shape, layout, task);
  if (layout.recompute == Recompute::full) {
    Layout whole = layout;
    whole.recompute = Recompute::none;
    parts.activations += kept_bytes(shape, whole, task);  // of the layer that is done again
  }
  const double tokens = local_tokens(layout, task);
  if (layout.pp == 1) {
    parts.activations += tokens * shape.vocabulary / layout.tp * kLogit;
  }
  parts.buffers = kFrameworkBytes;
  if (layout.zero >= 3) {
    // Two layers are whole at a time: the one at work and the next.
    parts.buffers += 2 * 2 * (weights.dense + weights.experts) / layers;
  }
  return parts;
}

}  // namespace unisono::planner
