#include "planner/memory.h"

#include <algorithm>
#include <cmath>

namespace unisono::planner {
namespace {

constexpr double kLogit = 4;                         // bytes: a bf16 logit and its gradient
constexpr double kFrameworkBytes = 2.0 * (1 << 30);  // context, kernels, buffers of collectives

// The elements of one token that a layer's mixer keeps, and those of its result, averaged over the
// layers.
struct MixerElements {
  double kept = 0;
  double results = 0;
};

MixerElements mixer_elements(const ModelShape& shape) {
  MixerElements sum;
  for (const auto& [kind, layers] : shape.kind_counts()) {
    const Heads heads = heads_of(shape, kind);
    const double share = static_cast<double>(layers) / shape.layers;
    if (kind.mixer == Mixer::attention) {
      sum.kept += share * heads.elements();
      sum.results += share * heads.queries * heads.value_dim;
    } else if (kind.mixer == Mixer::linear) {
      sum.kept += share * (shape.linear.columns + shape.linear.rows);
      sum.results += share * shape.linear.rows;
    }
  }
  return sum;
}

}  // namespace

// The inputs of products are kept in the type in which they are multiplied; the inputs of norms,
// activation functions and attention stay bf16.
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
  const double made = shape.gated ? 2 : 1;  // inputs of the activation function
  const double inner = made * kPlain + (is_selective ? 0 : input);
  // The output of attention is kept both as computed and as multiplied.
  const MixerElements mixed = mixer_elements(shape);
  const double output = input < kPlain ? mixed.results * input : 0;
  // The masks of two dropouts count only if the scores go through memory.
  const double masks = task.materialised_attention ? 2 : 0;
  const double norms = 2 * kPlain + (is_selective ? 0 : 2 * input);
  double wide = shape.ffn * inner;
  double rows = 0;
  if (shape.has_experts()) {
    wide = shape.shared_ffn * inner;
    rows = shape.experts_per_token / tp * (shape.hidden * input + shape.expert_ffn * inner);
  }
  double bytes = tokens * (shape.hidden * (norms + masks) / share +
                           (mixed.kept * kPlain + output) / tp + wide / tp + rows);
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

// Compression weights are whole on all ranks of tp, and so are key-value heads if they are fewer
// than ranks.
double local_mixer_weights(const ModelShape& shape, LayerKind kind, double tp) {
  const double all = mixer_weights(shape, kind);
  if (kind.mixer != Mixer::attention) {
    return all / tp;
  }
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    const double down = shape.hidden * (latent.query_rank + latent.value_rank + latent.rotary_dim);
    return down + (all - down) / tp;
  }
  const Heads heads = heads_of(shape, kind);
  const double copies = tp > heads.keys ? tp : 1;
  const double keys = shape.hidden * heads.keys * (heads.dim + heads.value_dim);
  return (all + (copies - 1) * keys) / tp;
}

LocalWeights local_weights(const ModelShape& shape, const Layout& layout) {
  const double layers = stage_layers(shape, layout);
  const double with_experts = layers * shape.expert_layers() / shape.layers;
  const double router = shape.hidden * shape.experts;
  LocalWeights weights;
  weights.dense =
      layers / shape.layers *
          sum_of_layers(shape,
                        [&](LayerKind kind) {
                          const bool is_dense = kind.has_inner && !kind.has_experts;
                          return local_mixer_weights(shape, kind, layout.tp) +
                                 (is_dense ? dense_weights(shape) / layout.tp : 0);
                        }) +
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
  // Only the activations of the current layer, and of the one being copied, stay.
  const double kept_layers = in_flight * layers;
  parts.activations = (layout.offload.activations ? std::min(2.0, kept_layers) : kept_layers) *
                      kept_bytes(shape, layout, task);
  if (layout.recompute == Recompute::full) {
    Layout whole = layout;
    whole.recompute = Recompute::none;
    parts.activations += kept_bytes(shape, whole, task);  // of the recomputed layer
  }
  const double tokens = local_tokens(layout, task);
  if (layout.pp == 1) {
    parts.activations += tokens * shape.vocabulary / layout.tp * kLogit;
  }
  parts.buffers = kFrameworkBytes;
  if (layout.zero >= 3) {
    // Two layers are whole at a time: the current one and the next.
    parts.buffers += 2 * 2 * (weights.dense + weights.experts) / layers;
  }
  return parts;
}

}  // namespace unisono::planner
