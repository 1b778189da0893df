#include "planner/config_family.h"

#include <algorithm>
#include <array>
#include <utility>

namespace unisono::planner {
namespace {

// The sizes of a row, in one line.
struct Sizes {
  int vocabulary = 0;
  int hidden = 0;
  int ffn = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

constexpr ConfigFamily sized(std::string_view name, const Sizes& sizes, ConfigFamily others) {
  others.name = name;
  others.vocabulary = sizes.vocabulary;
  others.hidden = sizes.hidden;
  others.ffn = sizes.ffn;
  others.layers = sizes.layers;
  others.heads = sizes.heads;
  others.kv_heads = sizes.kv_heads;
  others.head_dim = sizes.head_dim;
  return others;
}

constexpr ConfigFamily kFamilies[] = {
    sized("llama", {32000, 4096, 11008, 32, 32}, {.vectors = Vectors::asked_bias}),
    sized("mistral", {32000, 4096, 14336, 32, 32, 8}, {.windows = Windows::all, .window = 4096}),
    sized("phi3", {32064, 3072, 8192, 32, 32}, {.windows = Windows::all}),
    sized("qwen2", {151936, 4096, 22016, 32, 32, 32},
          {.vectors = Vectors::query_bias, .windows = Windows::late, .window = 4096}),
    sized("qwen2_moe", {151936, 2048, 5632, 24, 16, 16},
          {.vectors = Vectors::query_bias,
           .windows = Windows::late,
           .window = 4096,
           .experts = Experts::sparse}),
    sized("qwen2_5_vl_text", {152064, 8192, 29568, 80, 64, 8},
          {.vectors = Vectors::query_bias,
           .windows = Windows::late,
           .window = 4096,
           .first_window = 80}),
    sized("qwen3", {151936, 4096, 22016, 32, 32, 32, 128},
          {.vectors = Vectors::head_norms, .windows = Windows::late, .window = 4096}),
    sized("qwen3_moe", {151936, 2048, 6144, 24, 32, 4},
          {.vectors = Vectors::head_norms,
           .windows = Windows::chosen,
           .window = 4096,
           .experts = Experts::sparse}),
    sized("qwen3_vl_text", {151936, 4096, 22016, 32, 32, 32, 128},
          {.vectors = Vectors::head_norms}),
    sized("qwen3_vl_moe_text", {151936, 2048, 5632, 24, 16, 16, 128},
          {.tied = true, .vectors = Vectors::head_norms, .experts = Experts::sparse}),
    sized("gemma", {256000, 3072, 24576, 28, 16, 16, 256},
          {.tied = true, .vectors = Vectors::asked_bias}),
    sized("gemma2", {256000, 2304, 9216, 26, 8, 4, 256},
          {.tied = true,
           .vectors = Vectors::four_norms,
           .windows = Windows::every_second,
           .window = 4096}),
    sized("gemma3_text", {262208, 2304, 9216, 26, 8, 4, 256},
          {.tied = true,
           .vectors = Vectors::four_head_norms,
           .windows = Windows::pattern,
           .window = 4096}),
    sized("mixtral", {32000, 4096, 14336, 32, 32, 8},
          {.windows = Windows::all, .experts = Experts::all}),
    sized("minimax_m2", {200064, 3072, 1536, 62, 48, 8, 128},
          {.vectors = Vectors::whole_norms, .experts = Experts::all, .has_score_bias = true}),
    sized("gpt_oss", {201088, 2880, 2880, 36, 64, 8, 64},
          {.vectors = Vectors::sinks,
           .windows = Windows::every_second,
           .window = 128,
           .experts = Experts::all}),
    sized("glm4_moe", {151552, 4096, 10944, 46, 96, 8},
          {.vectors = Vectors::asked_head_norms,
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .has_score_bias = true}),
    sized("deepseek_v2", {102400, 4096, 11008, 32, 32},
          {.vectors = Vectors::asked_bias, .experts = Experts::deepseek, .is_latent = true}),
    sized("deepseek_v3", {129280, 7168, 18432, 61, 128},
          {.vectors = Vectors::asked_bias,
           .experts = Experts::deepseek,
           .dense_layers = 3,
           .is_latent = true,
           .has_score_bias = true}),
    sized("llama4_text", {202048, 5120, 8192, 48, 40, 8, 128},
          {.vectors = Vectors::asked_bias,
           .windows = Windows::chunks,
           .window = 8192,
           .experts = Experts::interleaved}),
    sized("gpt2", {50257, 768, 0, 12, 12}, {.tied = true, .vectors = Vectors::gpt2})};

// Names of the same architecture. Those of models that see are of their text alone.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOtherNames = {
    {{"kimi_k2", "deepseek_v3"},
     {"gemma3", "gemma3_text"},
     {"llama4", "llama4_text"},
     {"qwen2_vl", "qwen2_5_vl_text"},
     {"qwen2_5_vl", "qwen2_5_vl_text"},
     {"qwen2_vl_text", "qwen2_5_vl_text"},
     {"qwen3_vl", "qwen3_vl_text"}}};

}  // namespace

std::span<const ConfigFamily> config_families() {
  return kFamilies;
}

const ConfigFamily* find_family(std::string_view model_type) {
  const auto* const other = std::ranges::find(
      kOtherNames, model_type, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view name = other == kOtherNames.end() ? model_type : other->second;
  const auto* const found = std::ranges::find(kFamilies, name, &ConfigFamily::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

}  // namespace unisono::planner
