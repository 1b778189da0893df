#include "planner/config_family.h"

#include <algorithm>
#include <utility>

namespace unisono::planner {
namespace {

// The sizes of a model, in the order of one table row.
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

constexpr KeyRule kYes = {.fallback = true};
constexpr KeyRule kAttentionBias = {.key = "attention_bias"};
constexpr KeyRule kInnerBias = {.key = "mlp_bias"};
constexpr KeyRule kUseBias = {.key = "use_bias"};

constexpr VectorRule kAskedBias = {
    .queries = kAttentionBias, .output = kAttentionBias, .inner = kInnerBias};
constexpr VectorRule kLatentBias = {.queries = kAttentionBias, .output = kAttentionBias};
constexpr VectorRule kQueryBias = {.queries = {.key = "qkv_bias", .fallback = true}};

constexpr VectorRule asked_bias(int norms, HeadNorms heads) {
  VectorRule rule = kAskedBias;
  rule.norms = norms;
  rule.heads = heads;
  return rule;
}

constexpr VectorRule kHeadNorms = asked_bias(2, HeadNorms::each);
constexpr VectorRule kWholeNorms = asked_bias(2, HeadNorms::whole);
constexpr VectorRule kFourNorms = asked_bias(4, HeadNorms::none);
constexpr VectorRule kAllBias = {.norm_size = 2, .queries = kYes, .output = kYes, .inner = kYes};

constexpr ConfigFamily kLatent = {.vectors = kLatentBias,
                                  .experts = Experts::deepseek,
                                  .is_latent = true,
                                  .has_score_bias = true};

constexpr ConfigFamily latent(int dense_layers) {
  ConfigFamily family = kLatent;
  family.dense_layers = dense_layers;
  return family;
}

constexpr ConfigFamily kGatedDelta = {
    .vectors = kHeadNorms, .gates_output = true, .linear = Linear::delta, .attention_period = 4};

constexpr ConfigFamily gated_delta(Experts experts) {
  ConfigFamily family = kGatedDelta;
  family.experts = experts;
  return family;
}

constexpr ConfigFamily kFamilies[] = {
    sized("llama", {32000, 4096, 11008, 32, 32}, {.vectors = kAskedBias}),
    sized("mistral", {32000, 4096, 14336, 32, 32, 8}, {.windows = Windows::all, .window = 4096}),
    sized("ministral", {32000, 4096, 14336, 32, 32, 8}, {.windows = Windows::all, .window = 4096}),
    sized("ministral3", {131072, 4096, 14336, 34, 32, 8, 128}, {.windows = Windows::all}),
    sized("phi", {51200, 2048, 8192, 24, 32, 32},
          {.vectors = {.norms = 1,
                       .norm_size = 2,
                       .queries = kYes,
                       .output = kYes,
                       .inner = kYes,
                       .head = kYes},
           .gated = false}),
    sized("phi3", {32064, 3072, 8192, 32, 32}, {.windows = Windows::all}),
    sized("phimoe", {32064, 4096, 6400, 32, 32, 8},
          {.vectors = {.norm_size = 2,
                       .queries = kAttentionBias,
                       .output = kAttentionBias,
                       .head = {.key = "lm_head_bias"}},
           .windows = Windows::all,
           .experts = Experts::all}),
    sized("qwen2", {151936, 4096, 22016, 32, 32, 32},
          {.vectors = kQueryBias, .windows = Windows::late, .window = 4096}),
    sized("qwen2_moe", {151936, 2048, 5632, 24, 16, 16},
          {.vectors = kQueryBias,
           .windows = Windows::late,
           .window = 4096,
           .experts = Experts::sparse}),
    sized("qwen2_5_vl_text", {152064, 8192, 29568, 80, 64, 8},
          {.vectors = kQueryBias, .windows = Windows::late, .window = 4096, .first_window = 80}),
    sized("qwen3", {151936, 4096, 22016, 32, 32, 32, 128},
          {.vectors = kHeadNorms, .windows = Windows::late, .window = 4096}),
    sized("qwen3_moe", {151936, 2048, 6144, 24, 32, 4},
          {.vectors = kHeadNorms,
           .windows = Windows::chosen,
           .window = 4096,
           .experts = Experts::sparse}),
    sized("qwen3_vl_text", {151936, 4096, 22016, 32, 32, 32, 128}, {.vectors = kHeadNorms}),
    sized("qwen3_vl_moe_text", {151936, 2048, 5632, 24, 16, 16, 128},
          {.tied = true, .vectors = kHeadNorms, .experts = Experts::sparse}),
    sized("qwen3_next", {151936, 2048, 5632, 48, 16, 2, 256}, gated_delta(Experts::sparse)),
    sized("qwen3_5_text", {248320, 4096, 12288, 32, 16, 4, 256}, gated_delta(Experts::none)),
    sized("qwen3_5_moe_text", {248320, 2048, 5632, 40, 16, 2, 256}, gated_delta(Experts::sparse)),
    sized("gemma", {256000, 3072, 24576, 28, 16, 16, 256}, {.tied = true, .vectors = kAskedBias}),
    sized("gemma2", {256000, 2304, 9216, 26, 8, 4, 256},
          {.tied = true, .vectors = kFourNorms, .windows = Windows::every_second, .window = 4096}),
    sized("gemma3_text", {262208, 2304, 9216, 26, 8, 4, 256},
          {.tied = true,
           .vectors = asked_bias(4, HeadNorms::each),
           .windows = Windows::pattern,
           .window = 4096}),
    sized("gemma4_text", {262144, 2304, 9216, 30, 8, 4, 256},
          {.tied = true,
           .vectors = asked_bias(4, HeadNorms::each),
           .windows = Windows::pattern,
           .window = 512,
           .experts = Experts::own,
           .has_dense_part = true}),
    sized("vaultgemma", {256000, 2304, 9216, 26, 8, 4, 256},
          {.tied = true, .vectors = kAskedBias, .windows = Windows::every_second, .window = 512}),
    sized("mixtral", {32000, 4096, 14336, 32, 32, 8},
          {.windows = Windows::all, .experts = Experts::all}),
    sized("minimax", {32000, 4096, 14336, 32, 32, 8},
          {.experts = Experts::all, .linear = Linear::lightning, .attention_period = 8}),
    sized("minimax_m2", {200064, 3072, 1536, 62, 48, 8, 128},
          {.vectors = {.heads = HeadNorms::whole,
                       .head_norms = {.key = "use_qk_norm", .fallback = true}},
           .experts = Experts::all,
           .has_score_bias = true}),
    sized("gpt_oss", {201088, 2880, 2880, 36, 64, 8, 64},
          {.vectors = {.queries = {.key = "attention_bias", .fallback = true},
                       .output = {.key = "attention_bias", .fallback = true}},
           .windows = Windows::every_second,
           .window = 128,
           .experts = Experts::all,
           .has_expert_bias = true,
           .has_sinks = true}),
    sized("glm", {151552, 4096, 13696, 40, 32, 2, 128},
          {.vectors = {.queries = {.key = "attention_bias", .fallback = true}}}),
    sized("glm4", {151552, 4096, 13696, 40, 32, 2, 128},
          {.vectors = {.norms = 4, .queries = {.key = "attention_bias", .fallback = true}}}),
    sized("glm4_moe", {151552, 4096, 10944, 46, 96, 8},
          {.vectors = {.heads = HeadNorms::each,
                       .head_norms = {.key = "use_qk_norm"},
                       .queries = kAttentionBias},
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .has_score_bias = true}),
    sized("glm4_moe_lite", {154880, 2048, 10240, 47, 20, 20}, latent(1)),
    sized("glm_moe_dsa", {154880, 6144, 12288, 78, 64, 64}, latent(3)),
    sized("deepseek_v2", {102400, 4096, 11008, 32, 32},
          {.vectors = kAskedBias, .experts = Experts::deepseek, .is_latent = true}),
    sized("deepseek_v3", {129280, 7168, 18432, 61, 128}, latent(3)),
    sized("deepseek_v32", {129280, 7168, 18432, 61, 128}, latent(3)),
    sized("kimi_linear", {163840, 2304, 9216, 27, 32, 32},
          {.vectors = kAskedBias,
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .is_latent = true,
           .has_score_bias = true,
           .linear = Linear::kimi,
           .attention_period = 4}),
    sized("minicpm3", {73448, 2560, 6400, 62, 40, 40},
          {.tied = true, .vectors = kAskedBias, .is_latent = true}),
    sized("youtu", {128256, 2048, 6144, 32, 16, 16},
          {.tied = true, .vectors = kLatentBias, .is_latent = true}),
    sized("dots1", {152064, 4608, 10944, 62, 32, 32},
          {.vectors = kHeadNorms, .experts = Experts::deepseek, .has_score_bias = true}),
    sized("deepseek", {102400, 4096, 11008, 30, 32, 32},
          {.vectors = kAskedBias, .experts = Experts::deepseek}),
    sized("bailing_moe", {157184, 2048, 5120, 20, 16, 4},
          {.vectors = {.heads = HeadNorms::each,
                       .head_norms = {.key = "use_qk_norm"},
                       .queries = {.key = "use_qkv_bias"},
                       .output = kUseBias},
           .experts = Experts::deepseek,
           .has_score_bias = true}),
    sized("hunyuan_v1_dense", {290943, 4096, 11008, 32, 32, 32},
          {.vectors = {.heads = HeadNorms::each,
                       .head_norms = {.key = "use_qk_norm", .fallback = true},
                       .queries = kAttentionBias,
                       .output = kAttentionBias}}),
    sized("mellum", {98304, 2304, 7168, 28, 32, 4, 128},
          {.vectors = kHeadNorms, .windows = Windows::all, .experts = Experts::own}),
    sized("hy_v3", {120832, 4096, 13312, 80, 64, 8, 128},
          {.vectors = kHeadNorms,
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .has_score_bias = true}),
    sized("solar_open", {196608, 4096, 10240, 48, 64, 8, 128},
          {.vectors = {.queries = kAttentionBias},
           .experts = Experts::deepseek,
           .has_score_bias = true}),
    sized("exaone4", {102400, 4096, 16384, 32, 32, 32},
          {.vectors = {.heads = HeadNorms::each},
           .windows = Windows::pattern,
           .window = 4096,
           .window_period = 4}),
    sized("exaone_moe", {102400, 4096, 16384, 32, 32, 32},
          {.vectors = {.heads = HeadNorms::each},
           .windows = Windows::pattern,
           .window = 4096,
           .window_period = 4,
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .has_score_bias = true}),
    sized("ernie4_5", {103424, 1024, 3072, 18, 16, 2, 128},
          {.tied = true, .vectors = {.queries = kUseBias, .output = kUseBias, .inner = kUseBias}}),
    sized(
        "ernie4_5_moe", {103424, 2560, 12288, 28, 20, 4},
        {.tied = true,
         .vectors = {.queries = kUseBias, .output = kUseBias, .inner = kUseBias, .head = kUseBias},
         .experts = Experts::deepseek,
         .dense_layers = 1,
         .has_score_bias = true}),
    sized("llama4_text", {202048, 5120, 8192, 48, 40, 8, 128},
          {.vectors = kAskedBias,
           .windows = Windows::chunks,
           .window = 8192,
           .experts = Experts::interleaved}),
    sized("mimo_v2_flash", {152576, 4096, 16384, 48, 64, 4, 192},
          {.vectors = {.queries = kAttentionBias},
           .windows = Windows::pattern,
           .window = 129,
           .window_keys = 2,
           .experts = Experts::deepseek,
           .dense_layers = 1,
           .has_score_bias = true,
           .has_window_sinks = true}),
    sized("step3p7_text", {128815, 4096, 11264, 45, 64, 8, 128},
          {.vectors = kHeadNorms,
           .windows = Windows::all,
           .experts = Experts::deepseek,
           .dense_layers = 3,
           .has_score_bias = true}),
    sized("nemotron_h", {131072, 4096, 21504, 52, 32, 8, 128},
          {.vectors = {.norms = 1, .queries = kAttentionBias, .inner = kInnerBias},
           .gated = false,
           .experts = Experts::own,
           .has_score_bias = true,
           .has_single_parts = true,
           .linear = Linear::mamba2}),
    sized("bamba", {128000, 4096, 14336, 32, 32, 8},
          {.vectors = kAskedBias, .linear = Linear::mamba2}),
    sized("granitemoehybrid", {32000, 4096, 11008, 32, 32, 32},
          {.vectors = kAskedBias, .experts = Experts::all, .linear = Linear::mamba2}),
    sized("lfm2", {65536, 2560, 12288, 32, 32, 8},
          {.tied = true, .vectors = {.heads = HeadNorms::each}, .linear = Linear::short_conv}),
    sized("granite", {32000, 4096, 11008, 32, 32, 32}, {.vectors = kAskedBias}),
    sized("granitemoe", {32000, 4096, 11008, 32, 32, 32},
          {.vectors = kAskedBias, .experts = Experts::all}),
    sized("cohere", {256000, 8192, 22528, 40, 64, 64},
          {.tied = true,
           .vectors = {.norms = 1,
                       .heads = HeadNorms::whole,
                       .head_norms = {.key = "use_qk_norm"},
                       .queries = kAttentionBias,
                       .output = kAttentionBias}}),
    sized("cohere2", {256000, 8192, 22528, 40, 64, 64, 128},
          {.tied = true,
           .vectors = {.norms = 1, .queries = kAttentionBias, .output = kAttentionBias},
           .windows = Windows::pattern,
           .window = 4096,
           .window_period = 4}),
    sized("olmo", {50304, 4096, 11008, 32, 32, 32},
          {.vectors = {.norm_size = 0, .queries = kAttentionBias, .output = kAttentionBias}}),
    sized("olmo2", {50304, 4096, 11008, 32, 32, 32}, {.vectors = kWholeNorms}),
    sized(
        "olmo3", {50304, 4096, 11008, 32, 32, 32},
        {.vectors = kWholeNorms, .windows = Windows::pattern, .window = 4096, .window_period = 4}),
    sized("olmoe", {50304, 2048, 2048, 16, 16, 16},
          {.vectors = kWholeNorms, .experts = Experts::all}),
    sized("smollm3", {128256, 2048, 11008, 36, 16, 4}, {.tied = true, .vectors = kAskedBias}),
    sized("seed_oss", {155136, 4096, 27648, 64, 80, 8, 128},
          {.vectors = {.queries = {.key = "attention_bias", .fallback = true},
                       .output = {.key = "attention_out_bias"},
                       .inner = kInnerBias}}),
    sized("internlm2", {103168, 4096, 11008, 32, 32},
          {.vectors = {.queries = {.key = "bias"}, .output = {.key = "bias"}}}),
    sized("internlm3", {128512, 4096, 10240, 48, 32, 2, 128},
          {.vectors = {.queries = {.key = "qkv_bias"},
                       .output = {.key = "bias"},
                       .inner = {.key = "bias"}}}),
    sized("helium", {48000, 2560, 7040, 24, 20, 20, 128},
          {.vectors = {.queries = kAttentionBias, .inner = kInnerBias}}),
    sized("cwm", {128256, 6144, 21504, 64, 48, 8, 128},
          {.vectors = {.inner = kInnerBias},
           .windows = Windows::pattern,
           .window = 8192,
           .window_period = 4}),
    sized("arcee", {32000, 2560, 18432, 32, 32, 32, 80}, {.vectors = kAskedBias, .gated = false}),
    sized("apertus", {131072, 4096, 14336, 32, 32, 32}, {.vectors = kHeadNorms, .gated = false}),
    sized("nemotron", {256000, 6144, 24576, 32, 48, 0, 128},
          {.vectors = {.norm_size = 2,
                       .queries = kAttentionBias,
                       .output = kAttentionBias,
                       .inner = kInnerBias},
           .gated = false}),
    sized("stablelm", {50304, 2560, 6912, 32, 32, 32},
          {.vectors = {.norm_size = 2, .queries = {.key = "use_qkv_bias"}}}),
    sized("starcoder2", {49152, 3072, 12288, 30, 24, 2},
          {.tied = true,
           .vectors = {.norm_size = 2,
                       .queries = {.key = "use_bias", .fallback = true},
                       .output = {.key = "use_bias", .fallback = true},
                       .inner = {.key = "use_bias", .fallback = true}},
           .gated = false,
           .windows = Windows::all}),
    sized("gpt_neox", {50432, 6144, 24576, 44, 64},
          {.vectors = {.norm_size = 2,
                       .queries = {.key = "attention_bias", .fallback = true},
                       .output = {.key = "attention_bias", .fallback = true},
                       .inner = kYes},
           .gated = false}),
    sized("gptj", {50400, 4096, 0, 28, 16},
          {.vectors = {.norms = 1, .norm_size = 2, .inner = kYes, .head = kYes},
           .gated = false,
           .ffn_times = 4}),
    sized("falcon", {65024, 4544, 0, 32, 71, 1},
          {.tied = true,
           .vectors = {.norms = 1,
                       .norm_size = 2,
                       .queries = {.key = "bias"},
                       .output = {.key = "bias"},
                       .inner = {.key = "bias"}},
           .gated = false,
           .ffn_times = 4}),
    sized("opt", {50272, 768, 3072, 12, 12},
          {.tied = true,
           .vectors = {.norm_size = 2,
                       .queries = {.key = "enable_bias", .fallback = true},
                       .output = {.key = "enable_bias", .fallback = true},
                       .inner = {.key = "enable_bias", .fallback = true},
                       .weights = {.key = "layer_norm_elementwise_affine", .fallback = true},
                       .last_norm = {.key = "do_layer_norm_before", .fallback = true}},
           .gated = false,
           .positions_key = "max_position_embeddings",
           .positions = 2048,
           .more_positions = 2}),
    sized("bloom", {250880, 64, 0, 2, 8},
          {.tied = true,
           .vectors = kAllBias,
           .gated = false,
           .ffn_times = 4,
           .has_embedding_norm = true}),
    sized("mpt", {50368, 2048, 0, 24, 16}, {.tied = true, .gated = false, .ffn_times = 4}),
    sized("gpt2", {50257, 768, 0, 12, 12},
          {.tied = true,
           .vectors = kAllBias,
           .gated = false,
           .ffn_times = 4,
           .positions_key = "n_positions"}),
    sized("gpt_bigcode", {50257, 768, 0, 12, 12, 1},
          {.tied = true,
           .vectors = kAllBias,
           .gated = false,
           .ffn_times = 4,
           .positions_key = "n_positions"})};

// Further names of the same architectures. Those of vision models only concern their text part.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"kimi_k2", "deepseek_v3"},
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
    {"gemma4_unified_text", "gemma4_text"},
    {"llama4", "llama4_text"},
    {"qwen2_vl", "qwen2_5_vl_text"},
    {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen2_vl_text", "qwen2_5_vl_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"step3p5", "step3p7_text"},
    {"step3p7", "step3p7_text"},
    {"granitemoeshared", "granitemoe"},
    {"mimo", "qwen2"},
    {"axk1", "deepseek_v3"},
    {"minimax_text_01", "minimax"},
    {"minimax_m1", "minimax"},
    {"emu3_text_model", "llama"},
    {"phi4_multimodal", "phi3"},
    {"phi4mm", "phi3"},
    {"mistral3", "mistral"},
    {"codegen", "gptj"},
    {"bailing_moe_v2", "bailing_moe"},
    {"baichuan", "llama"},
    {"kimi_vl", "deepseek_v3"}};

}  // namespace

std::span<const ConfigFamily> config_families() {
  return kFamilies;
}

const ConfigFamily* find_family(std::string_view model_type) {
  const auto* const other = std::ranges::find(
      kOtherNames, model_type, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view name = other == std::end(kOtherNames) ? model_type : other->second;
  const auto* const found = std::ranges::find(kFamilies, name, &ConfigFamily::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

}  // namespace unisono::planner
