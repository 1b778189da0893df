// The architectures whose config.json is understood, and what each assumes where a key is missing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace unisono::planner {

// Pattern of layers with a window, if "layer_types" does not list them.
enum class Windows : std::uint8_t {
  none,
  all,
  every_second,  // layer 0, 2, ...: Gemma 2, gpt-oss
  pattern,       // all but every `window_period`-th: Gemma 3, Cohere 2, OLMo 3
  late,          // with "use_sliding_window", from "max_window_layers" on: Qwen2
  chosen,        // with "use_sliding_window", all of them
  chunks         // chunks, in all but every fourth: Llama 4
};

// The layers that have experts, if "mlp_layer_types" does not list them.
enum class Experts : std::uint8_t {
  none,
  all,         // Mixtral: of the inner width
  own,         // all, of "moe_intermediate_size"
  sparse,      // "decoder_sparse_step", "mlp_only_layers": Qwen
  deepseek,    // "first_k_dense_replace", "moe_layer_freq", "moe_layers_enum"
  interleaved  // "interleave_moe_layer_step", "moe_layers": Llama 4
};

// The mixer of layers that are not attention.
enum class Linear : std::uint8_t {
  none,
  delta,      // Gated DeltaNet: Qwen3-Next
  kimi,       // Kimi Delta Attention
  mamba2,     // Nemotron-H, Bamba, Granite 4
  lightning,  // MiniMax-01
  short_conv  // LFM2
};

enum class HeadNorms : std::uint8_t { none, each, whole };

// A bias or a norm is there if `key` says so, or without it if the architecture does.
struct KeyRule {
  std::string_view key = {};
  bool fallback = false;
};

// Vectors of a layer.
struct VectorRule {
  int norms = 2;
  int norm_size = 1;  // 2: a bias as well; 0: a norm without weights
  HeadNorms heads = HeadNorms::none;
  KeyRule head_norms = {.fallback = true};  // where `heads` is not none
  KeyRule queries = {};                     // bias of queries, keys and values
  KeyRule output = {};
  KeyRule inner = {};                      // of dense inner parts, and of shared experts
  KeyRule weights = {.fallback = true};    // of norms
  KeyRule last_norm = {.fallback = true};  // behind all layers
  KeyRule head = {};                       // bias of the product with the vocabulary
};

struct ConfigFamily {
  std::string_view name = {};
  // The defaults of transformers 5.24, whose configuration classes config_json_test.cc was checked
  // with. kv_heads 0: as many as heads; head_dim 0: the width over the heads.
  bool tied = false;
  int vocabulary = 0;
  int hidden = 0;
  int ffn = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  VectorRule vectors = {};
  bool gated = true;
  double ffn_times = 0;  // the width of the inner part, over that of the model, if no key says it
  Windows windows = Windows::none;
  int window = 0;  // 0: none
  int window_period = 6;
  int window_keys = 1;    // times the heads of keys of other layers, if no key says it
  int first_window = 28;  // "max_window_layers"
  Experts experts = Experts::none;
  int dense_layers = 0;  // the first ones
  bool is_latent = false;
  bool has_score_bias = false;  // a number for each expert, added to its score
  bool has_expert_bias = false;
  bool has_sinks = false;         // a number for each head
  bool has_window_sinks = false;  // the same, in layers with a window
  bool has_embedding_norm = false;
  bool has_dense_part = false;  // beside experts, a dense inner part: Gemma 4
  bool gates_output = false;
  bool has_single_parts = false;        // a layer mixes tokens, or is an inner part: Nemotron-H
  std::string_view positions_key = {};  // of learned positions
  int positions = 1024;                 // where the file does not say them
  int more_positions = 0;               // than the key says
  Linear linear = Linear::none;
  int attention_period = 0;  // every so many layers are attention
};

std::span<const ConfigFamily> config_families();
// By "model_type", also by another name of the same architecture. Null: not known.
const ConfigFamily* find_family(std::string_view model_type);

}  // namespace unisono::planner
