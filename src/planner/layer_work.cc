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

// Heads of keys and values on one of so many ranks: latents unfold to as many as queries have.
// Where there are fewer heads than ranks, several ranks have the same one.
double kv_heads(const ModelShape& shape, double ranks) {
  const double heads = shape.latent.is_used() ? shape.heads : shape.kv_heads;
  return std::max(1.0, heads / ranks);
}

// Elements of a row that go into what tp cuts: instead of the row itself what it is compressed to.
double entering(const ModelShape& shape) {
  const LatentAttention& latent = shape.latent;
  return !latent.is_used() ? shape.hidden
                           : (latent.query_rank > 0 ? latent.query_rank : shape.hidden) +
                                 latent.value_rank + latent.rotary_dim;
}

void add_projections(const ModelShape& shape, const Layout& layout, double tokens,
                     LayerWork& work) {
  const double heads = static_cast<double>(shape.heads) / layout.tp;
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    // Compression weights are whole on all ranks, and process the rank's own rows.
    const double rows = tokens / (layout.sequence_parallel ? layout.tp : 1);
    const double down = latent.query_rank + latent.value_rank + latent.rotary_dim;
    work.products.push_back({rows, down, shape.hidden});
    work.products.push_back({tokens, heads * query_dim(shape),
                             latent.query_rank > 0 ? latent.query_rank : shape.hidden});
    work.products.push_back(
        {tokens, heads * (latent.plain_dim + latent.value_dim), latent.value_rank});
  } else {
    work.products.push_back(
        {tokens, (heads + 2 * kv_heads(shape, layout.tp)) * shape.head_dim, shape.hidden});
  }
  work.products.push_back({tokens, shape.hidden, heads * value_dim(shape)});
}

// Fused attention computes half of the scores of a causal mask and writes none.
void add_attention(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                   LayerWork& work) {
  const double tokens = local_tokens(layout, task) * layout.uly;
  const double heads = static_cast<double>(shape.heads) / (layout.tp * layout.uly);
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
  // Scores come twice, the gradients of queries, keys and values once.
  work.attention_backward =
      (3 * query_dim(shape) + 2 * value_dim(shape)) / (query_dim(shape) + value_dim(shape));
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
  work.products.push_back(
      {tokens, static_cast<double>(shape.experts), shape.hidden});  // the router
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

// Keys and values go around, and on the way back once more, with the sums of their gradients one
// step behind. Over uly, all that goes into and out of attention changes between places and heads:
// backward what went in once more and what comes back, each with its gradient, and two numbers for
// each row of a head.
void add_context(const ModelShape& shape, const Layout& layout, double tokens, LayerWork& work) {
  const double query = query_dim(shape);
  const double value = value_dim(shape);
  const double keys = kv_heads(shape, layout.tp * layout.uly) * (query + value);
  const double around = tokens * layout.uly * keys * kElement;
  work.context_bytes = around * (layout.cp - 1);
  work.backward_context_bytes = layout.cp > 1 ? around * (2 * layout.cp - 1) : 0;
  const double heads = static_cast<double>(shape.heads) / layout.tp;
  const double keys_sent =
      std::max(kv_heads(shape, layout.tp), layout.uly * kv_heads(shape, layout.tp * layout.uly));
  const double given = heads * query + keys_sent * (query + value);
  const double sent = tokens * kElement * (layout.uly - 1) / layout.uly;
  work.heads_bytes = sent * (given + heads * (value + 1));
  work.backward_heads_bytes = sent * (2 * given + heads * (value + 2));
}

}  // namespace

LayerWork layer_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     bool has_experts) {
  LayerWork work;
  const double tokens = local_tokens(layout, task);
  const double tp = layout.tp;
  add_projections(shape, layout, tokens, work);
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
  // Rows enter and leave attention and the inner part. Forward and backward pass together move as
  // much with sequence parallelism as without.
  work.tensor_bytes =
      2 * tokens * kElement * (3 * shape.hidden + entering(shape)) / 2 * (tp - 1) / tp;
  add_context(shape, layout, tokens, work);
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
