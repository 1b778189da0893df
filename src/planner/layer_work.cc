#include "planner/layer_work.h"

#include <algorithm>

namespace unisono::planner {
namespace {

constexpr double kElement = 2;  // bytes of an activation: bf16
constexpr double kScore = 5;    // bytes a score takes when it is dropped out: two elements, a mask

double query_dim(const ModelShape& shape) {
  return shape.latent.is_used() ? shape.latent.plain_dim + shape.latent.rotary_dim : shape.head_dim;
}

double value_dim(const ModelShape& shape) {
  return shape.latent.is_used() ? shape.latent.value_dim : shape.head_dim;
}

void add_projections(const ModelShape& shape, double tokens, double tp, LayerWork& work) {
  const double heads = shape.heads / tp;
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    const double down = latent.query_rank + latent.value_rank + latent.rotary_dim;
    work.products.push_back({tokens, down, shape.hidden});
    work.products.push_back({tokens, heads * query_dim(shape), latent.query_rank});
    work.products.push_back(
        {tokens, heads * (latent.plain_dim + latent.value_dim), latent.value_rank});
  } else {
    const double kv_heads = std::max(1.0, shape.kv_heads / tp);
    work.products.push_back({tokens, (heads + 2 * kv_heads) * shape.head_dim, shape.hidden});
  }
  work.products.push_back({tokens, shape.hidden, heads * value_dim(shape)});
}

// Fused attention computes half of the scores of a causal mask and writes none.
void add_attention(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                   LayerWork& work) {
  const double tokens = local_tokens(layout, task);
  const double heads = static_cast<double>(shape.heads) / layout.tp;
  const double rows = task.sequence / layout.cp;
  if (task.materialised_attention) {
    const double count = layout.micro_batch * heads;
    work.attention.push_back({rows, task.sequence, query_dim(shape), count});
    work.attention.push_back({rows, value_dim(shape), task.sequence, count});
    const double scores = count * rows * task.sequence;
    work.memory_bytes += scores * (2 * kElement + kScore);
    work.backward_memory_bytes += scores * (3 * kElement + kScore);
    return;
  }
  const double seen = mean_seen_in_sequence(shape, task.sequence);
  work.attention.push_back({tokens, seen, query_dim(shape), heads});
  work.attention.push_back({tokens, value_dim(shape), seen, heads});
}

void add_inner(const ModelShape& shape, const Layout& layout, double tokens, bool has_experts,
               LayerWork& work) {
  const double parts = shape.gated ? 2 : 1;
  const auto inner = [&](double rows, double width, double count) {
    if (rows <= 0 || width <= 0) {
      return;
    }
    work.products.push_back({rows, parts * width, shape.hidden, count});
    work.products.push_back({rows, shape.hidden, width, count});
    work.memory_bytes += count * rows * width * (parts + 1) * kElement;
    work.backward_memory_bytes += count * rows * width * (parts + 2) * kElement;
  };
  if (!has_experts) {
    inner(tokens, shape.ffn / layout.tp, 1);
    return;
  }
  // Each token goes to k experts; a rank of the tensor-parallel group sends its part of the tokens.
  const double sent = tokens / layout.tp * shape.experts_per_token;
  const double local = static_cast<double>(shape.experts) / layout.ep;
  inner(sent / local, shape.expert_ffn, local);
  inner(tokens, shape.shared_ffn / layout.tp, 1);
  const double moved = sent * shape.hidden * kElement;
  work.memory_bytes += 4 * moved;  // rows are put in the order of experts, and summed back
  work.backward_memory_bytes += 4 * moved;
  work.expert_tokens = tokens / layout.tp;
}

}  // namespace

LayerWork layer_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     bool has_experts) {
  LayerWork work;
  const double tokens = local_tokens(layout, task);
  const double tp = layout.tp;
  add_projections(shape, tokens, tp, work);
  add_attention(shape, layout, task, work);
  add_inner(shape, layout, tokens, has_experts, work);

  // Two norms (read, written), two sums with what went around (two read, one written) and, where
  // scores are dropped out, two dropouts.
  const double row = tokens * shape.hidden * kElement;
  const double share = layout.sequence_parallel ? tp : 1;
  const double heads = (shape.heads + 2.0 * shape.kv_heads) * shape.head_dim / tp;
  work.memory_bytes +=
      row / share * (task.materialised_attention ? 11 : 10) + tokens * heads * kElement * 2;
  work.backward_memory_bytes += row / share * 10 + tokens * heads * kElement * 2;
  if (task.precision != Precision::bf16) {
    // Each input of a product is read and written once more, narrower.
    for (const MatrixProduct& product : work.products) {
      const double bytes = product.count * product.m * product.k * 3;
      work.memory_bytes += bytes;
      work.backward_memory_bytes += bytes + product.count * product.m * product.n * 3;
    }
  }
  work.tensor_bytes = 2 * 2 * row * (tp - 1) / tp;
  work.context_bytes = tokens * cache_elements(shape) * kElement / tp * (layout.cp - 1);
  return work;
}

LayerWork head_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  const double tokens = local_tokens(layout, task);
  const double columns = shape.vocabulary / layout.tp;
  LayerWork work;
  work.products.push_back({tokens, columns, shape.hidden});
  // The loss reads the logits and writes what becomes their gradient, in f32.
  work.memory_bytes = tokens * columns * (kElement + 4 * 2);
  work.backward_memory_bytes = tokens * columns * (kElement + 4);
  return work;
}

}  // namespace unisono::planner
