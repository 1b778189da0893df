#include "estimate/shape.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace unisono::estimate {
namespace {

// The sources are the config.json files that the models are published with; of GPT-3 it is table
// 2.1 of Brown et al., 2020, of the sizes below it Narayanan et al., 2021.
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
      {.name = "llama3-8b",
       .layers = 32,
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 14336,
       .vocabulary = 128256},
      {.name = "llama3-70b",
       .layers = 80,
       .hidden = 8192,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 28672,
       .vocabulary = 128256},
      {.name = "llama3-405b",
       .layers = 126,
       .hidden = 16384,
       .heads = 128,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 53248,
       .vocabulary = 128256},
      {.name = "mixtral-8x7b",
       .layers = 32,
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .ffn = 14336,
       .vocabulary = 32000,
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
       .experts = 256,
       .experts_per_token = 8,
       .expert_ffn = 2048,
       .shared_ffn = 2048,
       .dense_layers = 3},
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
       .experts = 384,
       .experts_per_token = 8,
       .expert_ffn = 2048,
       .shared_ffn = 2048,
       .dense_layers = 1},
      {.name = "gpt-oss-120b",
       .layers = 36,
       .hidden = 2880,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 64,
       .ffn = 2880,
       .vocabulary = 201088,
       .window = 128,
       .experts = 128,
       .experts_per_token = 4,
       .expert_ffn = 2880},
  };
  return kModels;
}

}  // namespace

double attention_weights(const ModelShape& shape) {
  const double heads = shape.heads;
  if (const LatentAttention& latent = shape.latent; latent.is_used()) {
    const double query = latent.plain_dim + latent.rotary_dim;
    const double queries =
        latent.query_rank > 0 ? shape.hidden * latent.query_rank + latent.query_rank * heads * query
                              : shape.hidden * heads * query;
    return queries + shape.hidden * (latent.value_rank + latent.rotary_dim) +
           latent.value_rank * heads * (latent.plain_dim + latent.value_dim) +
           heads * latent.value_dim * shape.hidden;
  }
  return shape.hidden * shape.head_dim * (2 * heads + 2.0 * shape.kv_heads);
}

double dense_weights(const ModelShape& shape) {
  return shape.hidden * shape.ffn * (shape.gated ? 3 : 2);
}

double shared_weights(const ModelShape& shape) {
  return shape.hidden * (shape.shared_ffn * 3 + shape.experts);
}

double expert_weights(const ModelShape& shape) {
  return shape.hidden * shape.expert_ffn * 3;
}

double total_weights(const ModelShape& shape) {
  const double experts = shape.expert_layers();
  return shape.layers * attention_weights(shape) + (shape.layers - experts) * dense_weights(shape) +
         experts * (shared_weights(shape) + shape.experts * expert_weights(shape)) +
         shape.hidden * shape.vocabulary * (shape.tied ? 1 : 2);
}

double active_weights(const ModelShape& shape) {
  const double experts = shape.expert_layers();
  const double left_out = shape.experts - shape.experts_per_token;
  return total_weights(shape) - experts * left_out * expert_weights(shape);
}

double cache_elements(const ModelShape& shape) {
  return shape.latent.is_used() ? shape.latent.value_rank + shape.latent.rotary_dim
                                : 2.0 * shape.kv_heads * shape.head_dim;
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
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    return std::to_string(shape.heads) + " heads cannot share " + std::to_string(shape.kv_heads) +
           " heads of keys and values evenly";
  }
  if (shape.experts_per_token > shape.experts) {
    return "a token cannot choose " + std::to_string(shape.experts_per_token) + " of " +
           std::to_string(shape.experts) + " experts";
  }
  if (shape.dense_layers > shape.layers) {
    return "more dense layers than layers";
  }
  return {};
}

}  // namespace unisono::estimate
