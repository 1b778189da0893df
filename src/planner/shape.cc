#include "planner/shape.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace unisono::planner {
namespace {

// The models of MosaicML: without biases; the embedding is also the head.
ModelShape mpt(const char* name, int layers, double hidden, int heads) {
  return {.name = name,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .ffn = 4 * hidden,
          .gated = false,
          .vocabulary = 50432,
          .tied = true,
          .vectors = (2.0 * layers + 1) * hidden};
}

ModelShape llama2(const char* name, int layers, double hidden, int heads, int kv_heads,
                  double ffn) {
  return {.name = name,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = hidden / heads,
          .ffn = ffn,
          .vocabulary = 32000,
          .vectors = (2.0 * layers + 1) * hidden};
}

// The sources are the models' published config.json files. The source of GPT-3 is table 2.1 of
// Brown et al., 2020; of the sizes below it, Narayanan et al., 2021.
const std::vector<ModelShape>& models() {
  static const std::vector<ModelShape> kModels = {
      {.name = "gpt3-175b",
       .layers = 96,
       .hidden = 12288,
       .heads = 96,
       .kv_heads = 96,
       .head_dim = 128,
       .ffn = 49152,
       .gated = false,
       .vocabulary = 51200,
       .tied = true},
      {.name = "gpt3-20b",
       .layers = 44,
       .hidden = 6144,
       .heads = 48,
       .kv_heads = 48,
       .head_dim = 128,
       .ffn = 24576,
       .gated = false,
       .vocabulary = 51200,
       .tied = true},
      mpt("mpt-1b", 24, 2048, 16),
      mpt("mpt-3b", 32, 2560, 20),
      mpt("mpt-7b", 32, 4096, 32),
      mpt("mpt-13b", 40, 5120, 40),
      mpt("mpt-30b", 48, 7168, 56),
      mpt("mpt-70b", 80, 8192, 64),
      {.name = "nemotron4-15b",
       .layers = 32,
       .hidden = 6144,
       .heads = 48,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 24576,
       .gated = false,
       .vocabulary = 256000},
      {.name = "nemotron4-340b",
       .layers = 96,
       .hidden = 18432,
       .heads = 96,
       .kv_heads = 8,
       .head_dim = 192,
       .ffn = 73728,
       .gated = false,
       .vocabulary = 256000},
      llama2("llama2-7b", 32, 4096, 32, 32, 11008),
      llama2("llama2-13b", 40, 5120, 40, 40, 13824),
      llama2("llama2-70b", 80, 8192, 64, 8, 28672),
      {.name = "grok-1",
       .layers = 64,
       .hidden = 6144,
       .heads = 48,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 32768,
       .vocabulary = 131072,
       .tied = true,
       .vectors = 257 * 6144,
       .experts = 8,
       .experts_per_token = 2,
       .expert_ffn = 32768},
      {.name = "llama3-8b",
       .layers = 32,
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 14336,
       .vocabulary = 128256,
       .vectors = 65 * 4096},
      {.name = "llama3-70b",
       .layers = 80,
       .hidden = 8192,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 28672,
       .vocabulary = 128256,
       .vectors = 161 * 8192},
      {.name = "llama3-405b",
       .layers = 126,
       .hidden = 16384,
       .heads = 128,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 53248,
       .vocabulary = 128256,
       .vectors = 253 * 16384},
      {.name = "mixtral-8x7b",
       .layers = 32,
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 14336,
       .vocabulary = 32000,
       .vectors = 65 * 4096,
       .experts = 8,
       .experts_per_token = 2,
       .expert_ffn = 14336},
      {.name = "qwen3-30b-a3b",
       .layers = 48,
       .hidden = 2048,
       .heads = 32,
       .kv_heads = 4,
       .head_dim = 128,
       .ffn = 6144,
       .vocabulary = 151936,
       .vectors = 97 * 2048 + 48 * 256,
       .experts = 128,
       .experts_per_token = 8,
       .expert_ffn = 768},
      {.name = "qwen3-235b-a22b",
       .layers = 94,
       .hidden = 4096,
       .heads = 64,
       .kv_heads = 4,
       .head_dim = 128,
       .ffn = 12288,
       .vocabulary = 151936,
       .vectors = 189 * 4096 + 94 * 256,
       .experts = 128,
       .experts_per_token = 8,
       .expert_ffn = 1536},
      {.name = "deepseek-v3",
       .layers = 61,
       .hidden = 7168,
       .heads = 128,
       .kv_heads = 128,
       .head_dim = 128,
       .ffn = 18432,
       .vocabulary = 129280,
       .latent = {.query_rank = 1536,
                  .value_rank = 512,
                  .plain_dim = 128,
                  .rotary_dim = 64,
                  .value_dim = 128},
       .vectors = 123 * 7168 + 61 * (1536 + 512) + 58 * 256,
       .experts = 256,
       .experts_per_token = 8,
       .expert_ffn = 2048,
       .shared_ffn = 2048,
       .kinds = std::vector<LayerKind>(3)},
      {.name = "kimi-k2",
       .layers = 61,
       .hidden = 7168,
       .heads = 64,
       .kv_heads = 64,
       .head_dim = 128,
       .ffn = 18432,
       .vocabulary = 163840,
       .latent = {.query_rank = 1536,
                  .value_rank = 512,
                  .plain_dim = 128,
                  .rotary_dim = 64,
                  .value_dim = 128},
       .vectors = 123 * 7168 + 61 * (1536 + 512) + 60 * 384,
       .experts = 384,
       .experts_per_token = 8,
       .expert_ffn = 2048,
       .shared_ffn = 2048,
       .kinds = std::vector<LayerKind>(1)},
      {.name = "gpt-oss-120b",
       .layers = 36,
       .hidden = 2880,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 64,
       .ffn = 2880,
       .vocabulary = 201088,
       .window = 128,
       .vectors = 73 * 2880 + 36 * (80 * 64 + 64 + 2880 + 128 + 128 * 3 * 2880),
       .experts = 128,
       .experts_per_token = 4,
       .expert_ffn = 2880,
       .kinds = window_pattern(36, 2, 1, true)},
  };
  return kModels;
}

int count_layers(const ModelShape& shape, bool LayerKind::* property) {
  int count = 0;
  for (int layer = 0; layer < shape.layers; ++layer) {
    count += shape.kind(layer).*property ? 1 : 0;
  }
  return count;
}

}  // namespace

LayerKind ModelShape::kind(int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  LayerKind kind =
      at < kinds.size() ? kinds[at] : LayerKind{.has_experts = true, .has_window = true};
  kind.has_experts = kind.has_experts && has_experts();
  kind.has_window = kind.has_window && window > 0;
  return kind;
}

Heads heads_of(const ModelShape& shape, LayerKind kind) {
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    return {shape.heads, shape.heads, latent.plain_dim + latent.rotary_dim, latent.value_dim};
  }
  if (kind.has_window && shape.window_heads.queries > 0) {
    return shape.window_heads;
  }
  return {shape.heads, shape.kv_heads, shape.head_dim,
          shape.value_dim > 0 ? shape.value_dim : shape.head_dim};
}

std::vector<KindCount> ModelShape::kind_counts() const {
  std::vector<KindCount> counts;
  for (int layer = 0; layer < layers; ++layer) {
    const LayerKind each = kind(layer);
    const auto found = std::ranges::find(counts, each, &KindCount::kind);
    if (found == counts.end()) {
      counts.push_back({each, 1});
    } else {
      ++found->layers;
    }
  }
  return counts;
}

bool ModelShape::is_uniform() const {
  return value_dim == 0 && window_heads.queries == 0 && indexer.chosen == 0 && !gates_output &&
         std::ranges::all_of(kinds, [](const LayerKind& each) {
           return each.mixer == Mixer::attention && each.has_inner;
         });
}

int ModelShape::expert_layers() const {
  return count_layers(*this, &LayerKind::has_experts);
}

int ModelShape::window_layers() const {
  return count_layers(*this, &LayerKind::has_window);
}

std::vector<LayerKind> window_pattern(int layers, int period, int first, bool has_experts) {
  std::vector<LayerKind> kinds;
  for (int layer = 0; layer < layers; ++layer) {
    kinds.push_back({.has_experts = has_experts, .has_window = layer % period != first});
  }
  return kinds;
}

double mixer_weights(const ModelShape& shape, LayerKind kind) {
  if (kind.mixer == Mixer::none) {
    return 0;
  }
  if (kind.mixer == Mixer::linear) {
    return shape.hidden * (shape.linear.columns + shape.linear.rows) + shape.linear.small;
  }
  const Heads heads = heads_of(shape, kind);
  const double results = heads.queries * heads.value_dim;
  const double queries = heads.queries * heads.dim + (shape.gates_output ? results : 0);
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    const double compressed = latent.query_rank > 0 ? latent.query_rank : shape.hidden;
    const double indexed = compressed * shape.indexer.heads * shape.indexer.dim +
                           shape.hidden * (shape.indexer.heads + shape.indexer.dim);
    return shape.hidden * latent.query_rank + compressed * queries +
           shape.hidden * (latent.value_rank + latent.rotary_dim) +
           latent.value_rank * shape.heads * (latent.plain_dim + latent.value_dim) +
           results * shape.hidden + indexed;
  }
  const bool has_values = !shape.keys_are_values || kind.has_window;
  const double values = has_values ? heads.keys * heads.value_dim : 0;
  return shape.hidden * (queries + heads.keys * heads.dim + values + results);
}

double dense_weights(const ModelShape& shape) {
  return shape.hidden * shape.ffn * (shape.gated ? 3 : 2);
}

double shared_weights(const ModelShape& shape) {
  return shape.hidden * (shape.shared_ffn * (shape.gated_experts ? 3 : 2) + shape.experts);
}

double expert_weights(const ModelShape& shape) {
  return shape.hidden * shape.expert_ffn * (shape.gated_experts ? 3 : 2);
}

PartWeights part_weights(const ModelShape& shape) {
  const double experts = shape.expert_layers();
  return {
      .attention = sum_of_layers(shape, [&](LayerKind kind) { return mixer_weights(shape, kind); }),
      .dense = sum_of_layers(shape,
                             [&](LayerKind kind) {
                               return kind.has_inner && !kind.has_experts ? dense_weights(shape)
                                                                          : 0.0;
                             }),
      .shared = experts * shared_weights(shape),
      .experts = experts * shape.experts * expert_weights(shape),
      .ends = shape.hidden * shape.vocabulary * (shape.tied ? 1 : 2) + shape.vectors};
}

double total_weights(const ModelShape& shape) {
  return part_weights(shape).total();
}

double bytes_of(const PartWeights& weights, const StoredWeights& stored) {
  return weights.attention * stored.attention + weights.dense * stored.dense +
         weights.shared * stored.shared + weights.experts * stored.experts +
         weights.ends * stored.ends;
}

double active_weights(const ModelShape& shape) {
  const double experts = shape.expert_layers();
  const double left_out = shape.experts - shape.experts_per_token;
  return total_weights(shape) - experts * left_out * expert_weights(shape);
}

double cache_elements(const ModelShape& shape, LayerKind kind) {
  if (kind.mixer != Mixer::attention) {
    return 0;
  }
  const Heads heads = heads_of(shape, kind);
  return shape.latent.is_used() ? shape.latent.value_rank + shape.latent.rotary_dim
                                : heads.keys * (heads.dim + heads.value_dim);
}

double kept_elements(const ModelShape& shape, double tokens) {
  return sum_of_layers(shape, [&](LayerKind kind) {
    const double indexed = kind.mixer == Mixer::attention ? shape.indexer.dim : 0;
    return kept_tokens(shape, kind, tokens) * (cache_elements(shape, kind) + indexed);
  });
}

double state_bytes(const ModelShape& shape) {
  constexpr double kFloat = 4;
  return sum_of_layers(shape, [&](LayerKind kind) {
    return kind.mixer == Mixer::linear ? kFloat * shape.linear.state : 0;
  });
}

namespace {

// Returns the most tokens that attention sees; 0: all.
double most_seen(const ModelShape& shape, LayerKind kind) {
  return kind.has_window ? shape.window : shape.indexer.chosen;
}

}  // namespace

double kept_tokens(const ModelShape& shape, LayerKind kind, double tokens) {
  return kind.has_window ? std::min(tokens, shape.window) : tokens;
}

double seen_tokens(const ModelShape& shape, LayerKind kind, double tokens) {
  const double most = most_seen(shape, kind);
  if (most == 0 || tokens <= most) {
    return tokens;
  }
  return kind.has_window && shape.is_chunked ? most / 2 : most;
}

double seen_in_sequence(const ModelShape& shape, LayerKind kind, double tokens) {
  const double most = most_seen(shape, kind);
  if (most == 0 || tokens <= most) {
    return tokens / 2;
  }
  // The first `most` tokens see half of the window on average, the others all of it. In chunks
  // every token sees half on average.
  return kind.has_window && shape.is_chunked ? most / 2 : most * (1 - most / (2 * tokens));
}

double mixing_flops(const ModelShape& shape, double tokens) {
  // Per element of the state: decay, read, and add the outer product of a key and a value.
  constexpr double kStateFlops = 6;
  return sum_of_layers(shape, [&](LayerKind kind) {
    if (kind.mixer != Mixer::attention) {
      return kind.mixer == Mixer::linear ? kStateFlops * shape.linear.state : 0;
    }
    const Heads heads = heads_of(shape, kind);
    return 2 * heads.queries * (heads.dim + heads.value_dim) *
               seen_in_sequence(shape, kind, tokens) +
           2 * shape.indexer.heads * shape.indexer.dim * tokens / 2;
  });
}

std::vector<std::string_view> known_models() {
  std::vector<std::string_view> names;
  for (const ModelShape& model : models()) {
    names.emplace_back(model.name);
  }
  return names;
}

std::optional<ModelShape> find_model(std::string_view name) {
  const auto found = std::ranges::find(models(), name, &ModelShape::name);
  return found == models().end() ? std::nullopt : std::optional(*found);
}

std::string problem_of(const ModelShape& shape) {
  constexpr double kMostWeights = 1e16;
  for (const LayerKind kind : {LayerKind(), LayerKind{.has_window = true}}) {
    const Heads heads = heads_of(shape, kind);
    if (heads.keys < 1 || heads.queries % heads.keys != 0) {
      return std::to_string(heads.queries) + " heads cannot share " + std::to_string(heads.keys) +
             " heads of keys and values evenly";
    }
  }
  if (shape.experts_per_token > shape.experts) {
    return "a token cannot choose " + std::to_string(shape.experts_per_token) + " of " +
           std::to_string(shape.experts) + " experts";
  }
  if (!(total_weights(shape) <= kMostWeights)) {
    return "more than 10^16 weights";
  }
  return {};
}

}  // namespace unisono::planner
