#include "planner/layer_work.h"

#include <algorithm>

namespace unisono::planner {
namespace {

constexpr double kElement = 2;  // bytes of an activation: bf16
constexpr double kScore = 5;    // bytes per score with dropout: two elements and a mask

// Returns the key-value heads on one of this many ranks. If there are fewer heads than ranks,
// several ranks have the same head.
double local_keys(const Heads& heads, double ranks) {
  return std::max(1.0, heads.keys / ranks);
}

// A kind of layer with its share of all layers, so that work is that of the mean layer.
struct KindShare {
  LayerKind kind = {};
  double share = 0;
};

std::vector<KindShare> mixers_of(const ModelShape& shape) {
  std::vector<KindShare> shares;
  for (const auto& [kind, layers] : shape.kind_counts()) {
    if (kind.mixer != Mixer::none) {
      shares.push_back({kind, static_cast<double>(layers) / shape.layers});
    }
  }
  return shares;
}

// Returns the elements of a row that enter the region that tp divides: the row, or its compressed
// form.
double entering(const ModelShape& shape) {
  const LatentAttention& latent = shape.latent;
  return !latent.is_used() ? shape.hidden
                           : (latent.query_rank > 0 ? latent.query_rank : shape.hidden) +
                                 latent.value_rank + latent.rotary_dim;
}

void add_projections(const ModelShape& shape, const Layout& layout, double tokens,
                     const KindShare& part, LayerWork& work) {
  const double tp = layout.tp;
  if (part.kind.mixer == Mixer::linear) {
    work.products.push_back({tokens, shape.linear.columns / tp, shape.hidden, part.share});
    work.products.push_back({tokens, shape.hidden, shape.linear.rows / tp, part.share});
    return;
  }
  const Heads heads = heads_of(shape, part.kind);
  const double queries = heads.queries / tp;
  const double results = queries * heads.value_dim;
  const double asked = queries * heads.dim + (shape.gates_output ? results : 0);
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    // Compression weights are whole on all ranks, and process only the rank's own rows.
    const double rows = tokens / (layout.sequence_parallel ? tp : 1);
    const double down = latent.query_rank + latent.value_rank + latent.rotary_dim;
    const double compressed = latent.query_rank > 0 ? latent.query_rank : shape.hidden;
    work.products.push_back({rows, down, shape.hidden, part.share});
    work.products.push_back({tokens, asked, compressed, part.share});
    work.products.push_back(
        {tokens, queries * (latent.plain_dim + latent.value_dim), latent.value_rank, part.share});
    if (const Indexer& indexer = shape.indexer; indexer.chosen > 0) {
      work.products.push_back({rows, indexer.heads * indexer.dim, compressed, part.share});
      work.products.push_back({rows, indexer.heads + indexer.dim, shape.hidden, part.share});
    }
  } else {
    const double keys = local_keys(heads, tp) * (heads.dim + heads.value_dim);
    work.products.push_back({tokens, asked + keys, shape.hidden, part.share});
  }
  work.products.push_back({tokens, shape.hidden, results, part.share});
}

// Fused attention computes half of the scores of a causal mask, and writes none of them.
void add_attention(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                   const KindShare& part, LayerWork& work) {
  const double tokens = local_tokens(layout, task) * layout.uly;
  if (part.kind.mixer == Mixer::linear) {
    // In chunks: the state is updated, decays and is read.
    const double columns = 3 * shape.linear.state / shape.linear.dim / (layout.tp * layout.uly);
    work.attention.push_back({tokens, columns, shape.linear.dim, part.share});
    return;
  }
  const Heads heads = heads_of(shape, part.kind);
  const double queries = static_cast<double>(heads.queries) / (layout.tp * layout.uly);
  const double rows = task.sequence / layout.cp;
  if (task.materialised_attention) {
    const double count = layout.micro_batch * queries * part.share;
    work.attention.push_back({rows, task.sequence, heads.dim, count});
    work.attention.push_back({rows, heads.value_dim, task.sequence, count});
    const double scores = count * rows * task.sequence;
    work.memory_bytes += scores * (2 * kElement + kScore);
    work.backward_memory_bytes += scores * (3 * kElement + kScore);
    return;
  }
  // Scores are computed twice, the gradients of queries, keys and values once.
  work.attention_backward = (3 * heads.dim + 2 * heads.value_dim) / (heads.dim + heads.value_dim);
  const double seen = seen_in_sequence(shape, part.kind, task.sequence);
  work.attention.push_back({tokens, seen, heads.dim, queries * part.share});
  work.attention.push_back({tokens, heads.value_dim, seen, queries * part.share});
  if (const Indexer& indexer = shape.indexer; indexer.chosen > 0) {
    work.attention.push_back({tokens, task.sequence / 2, indexer.dim, indexer.heads * part.share});
  }
}

// Returns the share of dense layers that have an inner part.
double dense_share(const ModelShape& shape) {
  double dense = 0;
  double inner = 0;
  for (const auto& [kind, layers] : shape.kind_counts()) {
    dense += kind.has_experts ? 0 : layers;
    inner += kind.has_inner && !kind.has_experts ? layers : 0;
  }
  return dense > 0 ? inner / dense : 1;
}

void add_inner(const ModelShape& shape, const Layout& layout, double tokens, bool has_experts,
               LayerWork& work) {
  const double parts = (has_experts ? shape.gated_experts : shape.gated) ? 2 : 1;
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
    inner(tokens, shape.ffn / layout.tp, dense_share(shape));
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
  work.memory_bytes += 4 * moved;  // rows are sorted by expert, and summed afterwards
  work.backward_memory_bytes += 4 * moved;
  work.expert_tokens = tokens / layout.tp;
}

// Keys and values are sent around the ring. In the backward pass they are sent around once more,
// and the sums of their gradients follow one step behind. Over uly, all inputs and outputs of
// attention are exchanged between positions and heads. In the backward pass, the inputs, all
// gradients, and two numbers per row and head are exchanged.
void add_context(const ModelShape& shape, const Layout& layout, double tokens,
                 const KindShare& part, LayerWork& work) {
  if (part.kind.mixer != Mixer::attention) {
    return;
  }
  const Heads heads = heads_of(shape, part.kind);
  const double both = heads.dim + heads.value_dim;
  const double here = local_keys(heads, layout.tp * layout.uly);
  const double around = part.share * tokens * layout.uly * here * both * kElement;
  work.context_bytes += around * (layout.cp - 1);
  work.backward_context_bytes += layout.cp > 1 ? around * (2 * layout.cp - 1) : 0;
  const double queries = static_cast<double>(heads.queries) / layout.tp;
  const double keys_sent = std::max(local_keys(heads, layout.tp), layout.uly * here);
  const double given = queries * heads.dim + keys_sent * both;
  const double sent = part.share * tokens * kElement * (layout.uly - 1) / layout.uly;
  work.heads_bytes += sent * (given + queries * (heads.value_dim + 1));
  work.backward_heads_bytes += sent * (2 * given + queries * (heads.value_dim + 2));
}

// Returns the elements of a token in norms or rotations of heads.
double turned_elements(const ModelShape& shape, LayerKind kind) {
  if (kind.mixer == Mixer::linear) {
    return shape.linear.columns;
  }
  const Heads heads = heads_of(shape, kind);
  return shape.latent.is_used()
             ? (shape.heads + 2.0 * shape.kv_heads) * shape.head_dim
             : (heads.queries + heads.keys) * heads.dim + heads.keys * heads.value_dim;
}

}  // namespace

LayerWork layer_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     bool has_experts) {
  LayerWork work;
  const double tokens = local_tokens(layout, task);
  const double tp = layout.tp;
  double turned = 0;
  for (const KindShare& part : mixers_of(shape)) {
    add_projections(shape, layout, tokens, part, work);
    add_attention(shape, layout, task, part, work);
    add_context(shape, layout, tokens, part, work);
    turned += part.share * turned_elements(shape, part.kind) / tp;
  }
  add_inner(shape, layout, tokens, has_experts, work);

  // Two norms (read, written), two sums with the residual (two read, one written) and, with dropout
  // of scores, two dropouts.
  const double row = tokens * shape.hidden * kElement;
  const double share = layout.sequence_parallel ? tp : 1;
  work.memory_bytes +=
      row / share * (task.materialised_attention ? 11 : 10) + tokens * turned * kElement * 2;
  work.backward_memory_bytes += row / share * 10 + tokens * turned * kElement * 2;
  if (task.precision != Precision::bf16) {
    // Each input of a product is read and written once more, in the narrower type.
    for (const MatrixProduct& product : work.products) {
      const double bytes = product.count * product.m * product.k * 3;
      work.memory_bytes += bytes;
      work.backward_memory_bytes += bytes + product.count * product.m * product.n * 3;
    }
  }
  // Rows enter and leave attention and the inner part. Forward and backward pass together move as
  // many bytes with sequence parallelism as without.
  work.tensor_bytes =
      2 * tokens * kElement * (3 * shape.hidden + entering(shape)) / 2 * (tp - 1) / tp;
  return work;
}

LayerWork head_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  const double tokens = local_tokens(layout, task);
  const double columns = shape.vocabulary / layout.tp;
  LayerWork work;
  work.products.push_back({tokens, columns, shape.hidden});
  // The loss reads the logits, and writes data for their gradient in f32.
  work.memory_bytes = tokens * columns * (kElement + 4 * 2);
  work.backward_memory_bytes = tokens * columns * (kElement + 4);
  return work;
}

}  // namespace unisono::planner
