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
  pattern,       // all but every sixth, or "sliding_window_pattern": Gemma 3
  late,          // with "use_sliding_window", from "max_window_layers" on: Qwen2
  chosen,        // with "use_sliding_window", all of them
  chunks         // chunks, in all but every fourth: Llama 4
};

// Where the inner part of a layer is made of experts.
enum class Experts : std::uint8_t {
  none,
  all,         // Mixtral: of the inner width
  sparse,      // "decoder_sparse_step", "mlp_only_layers": Qwen
  deepseek,    // "first_k_dense_replace", "moe_layer_freq"
  interleaved  // "interleave_moe_layer_step", "moe_layers": Llama 4
};

// Vectors that a layer has besides two norms.
enum class Vectors : std::uint8_t {
  none,
  query_bias,        // of queries, keys and values, always
  asked_bias,        // of these and the output, where "attention_bias" says so
  four_norms,        // two norms more
  head_norms,        // norms of a head's query and key, and asked_bias
  four_head_norms,   // both
  whole_norms,       // norms of all heads together
  asked_head_norms,  // where "use_qk_norm" says so; bias without the output's
  sinks,             // bias of everything, and a number for each head
  gpt2               // bias of everything, and of the norms
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
  Vectors vectors = Vectors::none;
  Windows windows = Windows::none;
  int window = 0;         // 0: none
  int first_window = 28;  // "max_window_layers"
  Experts experts = Experts::none;
  int dense_layers = 0;  // the first ones
  bool is_latent = false;
  bool has_score_bias = false;  // a number for each expert, added to its score
};

std::span<const ConfigFamily> config_families();
// By "model_type", also by another name of the same architecture. Null: not known.
const ConfigFamily* find_family(std::string_view model_type);

}  // namespace unisono::planner
