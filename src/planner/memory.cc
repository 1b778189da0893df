#include "planner/memory.h"

#include <algorithm>
#include <cmath>

namespace unisono::planner {
namespace {

constexpr double kFrameworkBytes = 2.0 * (1 << 30);  // context, kernels, buffers of collectives

// Bytes that a layer keeps for the backward pass, of one microbatch.
double kept_bytes(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  const double tokens = local_tokens(layout, task);
  const double tp = layout.tp;
  const double share = layout.sequence_parallel ? tp : 1;
  if (layout.recompute == Recompute::full) {
    return tokens * shape.hidden * 2 / share;
  }
  const double heads = (2.0 * shape.heads + 2.0 * shape.kv_heads) * shape.head_dim;
  const double parts = shape.gated ? 3 : 2;
  double wide = shape.ffn * parts;
  double rows = 0;
  if (shape.has_experts()) {
    wide = shape.shared_ffn * parts;
    rows = shape.experts_per_token / tp * (2 * shape.hidden + parts * shape.expert_ffn);
  }
  // Inputs of two norms, of the projections and of the inner part; what the mask of two dropouts
  // takes is counted only with scores that go through memory.
  const double masks = task.materialised_attention ? 2 : 0;
  const bool is_selective = layout.recompute == Recompute::selective;
  const double inputs = is_selective ? 4 : 8;
  const double made = is_selective ? (parts - 1) / parts : 1;
  double bytes = tokens * (shape.hidden * (inputs + masks) / share + 2 * heads / tp +
                           2 * made * (wide / tp + rows));
  if (task.materialised_attention && layout.recompute == Recompute::none) {
    bytes += 5 * layout.micro_batch * shape.heads / tp * task.sequence * task.sequence /
             (layout.cp * layout.uly);
  }
  return bytes;
}

}  // namespace

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
  parts.weights = held(2, 3);
  parts.gradients = held(4, 2);
  parts.optimiser = held(12, 1);

  const double count = microbatches(layout, task);
  const double layers = stage_layers(shape, layout);
  double in_flight = std::min<double>(layout.pp, count);
  if (layout.vp > 1) {
    in_flight *= 1 + (layout.pp - 1.0) / (static_cast<double>(layout.pp) * layout.vp);
  }
  parts.activations = in_flight * layers * kept_bytes(shape, layout, task);
  if (layout.recompute == Recompute::full) {
    Layout whole = layout;
    whole.recompute = Recompute::none;
    parts.activations += kept_bytes(shape, whole, task);  // of the layer that is done again
  }
  const double tokens = local_tokens(layout, task);
  if (layout.pp == 1) {
    parts.activations += tokens * shape.vocabulary / layout.tp * 6;  // logits and their gradient
  }
  parts.buffers = kFrameworkBytes;
  if (layout.zero >= 3) {
    // Two layers are whole at a time: the one at work and the next.
    parts.buffers += 2 * 2 * (weights.dense + weights.experts) / layers;
  }
  return parts;
}

}  // namespace unisono::planner
