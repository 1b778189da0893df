// The architectures whose config.json is understood, with the values that each assumes for missing
// keys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace unisono::planner {

// The layers with a window, if "layer_types" does not list them.
enum class Windows : std::uint8_t {
  none,
  all,
  every_second,  // layers 0, 2, ...: Gemma 2, gpt-oss
  pattern,       // all but every `window_period`-th: Gemma 3, Cohere 2, OLMo 3
  late,          // with "use_sliding_window", from "max_window_layers" on: Qwen2
  chosen,        // with "use_sliding_window", all layers
  chunks         // chunks, in all but every fourth layer: Llama 4
};

// The layers that have experts, if "mlp_layer_types" does not list them.
enum class Experts : std::uint8_t {
  none,
  all,         // Mixtral: all, with the dense inner width
  own,         // all, with "moe_intermediate_size"
  sparse,      // "decoder_sparse_step", "mlp_only_layers": Qwen
  deepseek,    // "first_k_dense_replace", "moe_layer_freq", "moe_layers_enum"
  interleaved  // "interleave_moe_layer_step", "moe_layers": Llama 4
};

// The mixer of layers without attention.
enum class Linear : std::uint8_t {
  none,
  delta,      // Gated DeltaNet: Qwen3-Next
  kimi,       // Kimi Delta Attention
  mamba2,     // Nemotron-H, Bamba, Granite 4
  lightning,  // MiniMax-01
  short_conv  // LFM2
};

enum class HeadNorms : std::uint8_t { none, each, whole };

// Decides if a bias or a norm exists: by the value of `key`, or by `fallback` without it.
struct KeyRule {
  std::string_view key = {};
  bool fallback = false;
};

// The biases and norms of a layer.
struct VectorRule {
  int norms = 2;
  int norm_size = 1;  // vectors per norm: 2 with a bias, 0 without weights
  HeadNorms heads = HeadNorms::none;
  KeyRule head_norms = {.fallback = true};  // applies if `heads` is not none
  KeyRule queries = {};                     // bias of queries, keys and values
  KeyRule output = {};
  KeyRule inner = {};                      // of dense inner parts and of shared experts
  KeyRule weights = {.fallback = true};    // whether norms have weights
  KeyRule last_norm = {.fallback = true};  // after all layers
  KeyRule head = {};                       // bias of the vocabulary product
};

struct ConfigFamily {
  std::string_view name = {};
  // Defaults of transformers 5.24; config_json_test.cc was checked with its configuration classes.
  // kv_heads 0: equal to heads; head_dim 0: width over heads.
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
  double ffn_times = 0;  // inner width over model width, if no key gives it
  Windows windows = Windows::none;
  int window = 0;  // 0: no window
  int window_period = 6;
  int window_keys = 1;    // ratio of key heads to those of other layers, if no key gives it
  int first_window = 28;  // "max_window_layers"
  Experts experts = Experts::none;
  int dense_layers = 0;  // number of leading layers that are dense
  bool is_latent = false;
  bool has_score_bias = false;  // a bias per expert, added to its score
  bool has_expert_bias = false;
  bool has_sinks = false;         // a number per head
  bool has_window_sinks = false;  // a number per head, in layers with a window
  bool has_embedding_norm = false;
  bool has_dense_part = false;  // a dense inner part besides the experts: Gemma 4
  bool gates_output = false;
  bool has_single_parts = false;        // a layer either mixes tokens or is an inner part:
                                        // Nemotron-H
  std::string_view positions_key = {};  // number of learned positions
  int positions = 1024;                 // used if the file does not give it
  int more_positions = 0;               // added to the key's value
  Linear linear = Linear::none;
  int attention_period = 0;  // every such layer is attention
};

std::span<const ConfigFamily> config_families();
// Finds an architecture by "model_type" or another name of the same architecture. Returns nullptr
// if it is unknown.
const ConfigFamily* find_family(std::string_view model_type);

}  // namespace unisono::planner
