// The shape of a decoder model: what its published configuration says, and what follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::estimate {

// Attention with compressed keys and values (DeepSeek-V2, 2024). All 0: plain heads.
struct LatentAttention {
  double query_rank = 0;
  double value_rank = 0;
  double plain_dim = 0;   // of a head's query and key, without a position
  double rotary_dim = 0;  // with a position
  double value_dim = 0;

  bool is_used() const { return value_rank > 0; }
};

struct ModelShape {
  std::string name = {};
  int layers = 0;
  double hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  double head_dim = 0;
  double ffn = 0;     // of a dense layer's inner width
  bool gated = true;  // two matrices into the inner width (SwiGLU), else one
  double vocabulary = 0;
  bool tied = false;  // one matrix for the embedding and the head
  double window = 0;  // of every second layer's attention; 0: all layers see the whole sequence
  LatentAttention latent = {};

  int experts = 0;  // of a layer; 0: a dense model
  int experts_per_token = 0;
  double expert_ffn = 0;
  double shared_ffn = 0;  // of experts that every token visits
  int dense_layers = 0;   // the first ones, without experts

  bool has_experts() const { return experts > 0; }
  int expert_layers() const { return has_experts() ? layers - dense_layers : 0; }
};

// Weights of one layer's parts.
double attention_weights(const ModelShape& shape);
double dense_weights(const ModelShape& shape);   // of a dense layer's inner part
double shared_weights(const ModelShape& shape);  // of shared experts and the router
double expert_weights(const ModelShape& shape);  // of one expert
double total_weights(const ModelShape& shape);
double active_weights(const ModelShape& shape);  // that one token meets

// Elements that a token leaves in the cache, in one layer.
double cache_elements(const ModelShape& shape);

// The models that are known by name, and one of them.
std::vector<std::string_view> known_models();
std::optional<ModelShape> find_model(std::string_view name);

// What is wrong with it; empty: nothing.
std::string problem_of(const ModelShape& shape);

}  // namespace unisono::estimate
