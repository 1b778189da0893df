// Compares published config.json files with the figures of their checkpoints.
#include "planner/config_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "planner/config_family.h"
#include "planner/serving.h"
#include "topology/presets.h"

namespace unisono::planner {
namespace {

std::string sample(const std::string& name) {
  std::ifstream file(UNISONO_CONFIG_SEEDS "/" + name + ".json");
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ModelConfig read(const std::string& text) {
  Parsed<ModelConfig> parsed = parse_config_json(text, "x");
  EXPECT_TRUE(parsed) << parsed.message << " at " << parsed.position;
  return parsed ? std::move(*parsed.value) : ModelConfig{};
}

// The weights of the checkpoints, for the text only and without layers that predict further tokens.
TEST(Config, WeightsAreThoseOfTheCheckpoints) {
  const std::map<std::string, double> weights = {{"gemma_2_2b", 2'614'341'888},
                                                 {"gemma_7b", 8'537'680'896},
                                                 {"gemma_3_1b", 999'885'952},
                                                 {"gemma_3_4b", 3'880'263'168},
                                                 {"gpt2", 124'439'808},
                                                 {"llama_3.2_1b", 1'235'814'400},
                                                 {"mistral_7b", 7'241'732'096},
                                                 {"mixtral_8x7b", 46'702'792'704},
                                                 {"phi_3_mini", 3'821'079'552},
                                                 {"qwen2.5_0.5b", 494'032'768},
                                                 {"qwen3_0.6b", 596'049'920},
                                                 {"qwen1.5_moe", 14'315'784'192},
                                                 {"qwen3_vl_30b", 30'532'122'624},
                                                 {"deepseek_v2_lite", 15'706'484'224},
                                                 {"deepseek_v3", 671'026'419'200},
                                                 {"kimi_k2.5", 1'026'408'232'448},
                                                 {"gpt_oss_120b", 116'829'156'672},
                                                 {"minimax_m2.5", 228'689'764'864},
                                                 {"llama_4_scout", 107'769'861'120},
                                                 {"llama_4_maverick", 400'711'848'960}};
  for (const auto& [name, count] : weights) {
    EXPECT_EQ(total_weights(read(sample("good_" + name)).shape), count) << name;
  }
}

TEST(Config, ModelsKnownByNameAreTheirFiles) {
  for (const auto& [name, file] :
       {std::pair("mixtral-8x7b", "mixtral_8x7b"), std::pair("deepseek-v3", "deepseek_v3"),
        std::pair("kimi-k2", "kimi_k2.5"), std::pair("gpt-oss-120b", "gpt_oss_120b")}) {
    const ModelShape known = find_model(name).value_or(ModelShape{});
    const ModelShape shape = read(sample(std::string("good_") + file)).shape;
    EXPECT_EQ(total_weights(known), total_weights(shape)) << name;
    EXPECT_EQ(active_weights(known), active_weights(shape)) << name;
    EXPECT_EQ(kept_elements(known, 50'000), kept_elements(shape, 50'000)) << name;
  }
}

TEST(Config, TheWidthOfOldBloomsIsNEmbed) {
  EXPECT_EQ(read(R"({"model_type": "bloom", "n_embed": 1536, "n_layer": 2, "n_head": 16,
                      "vocab_size": 250880})")
                .shape.hidden,
            1536);
}

// The defaults equal those of transformers 5.24.
TEST(Config, EmbeddingsAreTiedByDefaultAsTransformersTiesThem) {
  const std::map<std::string, bool> tied = {
      {"llama", false}, {"mistral", false}, {"qwen2", false}, {"qwen3", false},
      {"phi3", false},  {"gemma", true},    {"gemma2", true}, {"gemma3_text", true}};
  for (const auto& [type, is_tied] : tied) {
    const ModelConfig config = read(R"({"hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 100,
        "vocab_size": 1000, "model_type": ")" +
                                    type + "\"}");
    EXPECT_EQ(config.shape.tied, is_tied) << type;
    const std::string said = is_tied ? "tie_word_embeddings=true" : "tie_word_embeddings=false";
    EXPECT_EQ(std::ranges::count(config.account.assumed, said), 1) << type;
  }
}

// OPT-6.7B has no such key: 2048 learned positions, plus 2.
TEST(Config, PositionsHaveTheDefaultOfTheirArchitecture) {
  const ModelConfig config = read(R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50272,
      "word_embed_proj_dim": 4096})");
  EXPECT_EQ(total_weights(config.shape), 6'658'473'984);
}

// A part of a larger file omits keys that have their default; a whole file has all sizes.
TEST(Config, PartsHaveTheDefaultsOfTheirArchitecture) {
  const ModelConfig part = read(sample("good_gemma_3_4b"));
  EXPECT_EQ(part.shape.heads, 8);
  EXPECT_EQ(part.shape.kv_heads, 4);
  EXPECT_EQ(part.shape.vocabulary, 262'208);
  EXPECT_EQ(part.account.left_out.size(), 1U);
  EXPECT_NE(part.account.left_out.front().find("vision_config"), std::string::npos);
  const auto whole = parse_config_json(R"({"model_type": "gemma3_text", "hidden_size": 64})", "x");
  EXPECT_FALSE(whole);
  EXPECT_EQ(whole.message, "key \"num_hidden_layers\" is missing");
}

// Bytes of keys and values in bf16 after 31,000 tokens.
TEST(Config, WindowsKeepTheirTokens) {
  const std::map<std::string, double> bytes = {
      {"mistral_7b", 32.0 * 4096 * 4096},
      {"gemma_2_2b", 13.0 * 4096 * (4096 + 31'000)},
      {"gemma_3_1b", 1024.0 * (22 * 512 + 4 * 31'000)},
      {"gpt_oss_120b", 2048.0 * 18 * (128 + 31'000)},
      {"llama_4_scout", 4096.0 * (36 * 8192 + 12 * 31'000)},
      {"gemma_4", 2.0 * (25 * 1024 * 8 * 512 + 5 * 31'000.0 * 2 * 1024)},
      {"qwen3.5_27b", 2.0 * 16 * 31'000 * 4 * 512},
      {"deepseek_v3.2", 2.0 * 61 * 31'000 * (512 + 64 + 128)},
      {"qwen2.5_0.5b", 512.0 * 24 * 31'000}};
  for (const auto& [name, expected] : bytes) {
    const ModelShape shape = read(sample("good_" + name)).shape;
    EXPECT_DOUBLE_EQ(kept_elements(shape, 31'000) * 2, expected) << name;
  }
}

std::string qwen2(const std::string& more) {
  return R"({"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 6,
      "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 100,
      "vocab_size": 1000, )" +
         more + "}";
}

TEST(Config, WindowsAreWhereTheFileSays) {
  const auto windows = [](const std::string& more) {
    return read(qwen2(more)).shape.window_layers();
  };
  EXPECT_EQ(windows(R"("sliding_window": 16, "max_window_layers": 2)"), 0);
  const std::string used = R"("use_sliding_window": true, "sliding_window": 16, )";
  EXPECT_EQ(windows(used + R"("max_window_layers": 2)"), 4);
  EXPECT_EQ(windows(used + R"("layer_types": ["full_attention", "sliding_attention",
      "full_attention", "full_attention", "full_attention", "full_attention"])"),
            1);
  EXPECT_EQ(windows(R"("use_sliding_window": true, "sliding_window": Infinity,
      "max_window_layers": 0)"),
            0);
  EXPECT_EQ(windows(R"("use_sliding_window": true, "sliding_window": null)"), 0);
  EXPECT_EQ(windows(used + R"("max_window_layers": 2, "layer_types": null)"), 4);
}

// Compares the mean with a sum over the positions of a sequence.
TEST(Config, AttentionWithAWindowSeesWhatItsPlacesSee) {
  ModelShape shape{.layers = 1, .window = 100};
  for (const bool is_chunked : {false, true}) {
    shape.is_chunked = is_chunked;
    for (const int tokens : {1, 50, 100, 1000, 10'000}) {
      double sum = 0;
      for (int place = 1; place <= tokens; ++place) {
        sum += is_chunked ? (place - 1) % 100 + 1 : std::min(place, 100);
      }
      const double mean = sum / tokens;
      EXPECT_NEAR(seen_in_sequence(shape, {.has_window = true}, tokens), mean, 0.5 + 0.01 * mean);
    }
  }
}

TEST(Config, ExpertsAreWhereTheFileSays) {
  EXPECT_EQ(read(sample("good_llama_4_maverick")).shape.expert_layers(), 24);
  EXPECT_FALSE(read(sample("good_llama_4_maverick")).shape.kind(0).has_experts);
  EXPECT_EQ(read(sample("good_deepseek_v3")).shape.expert_layers(), 58);
  const std::string moe = R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 8,
      "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 100,
      "moe_intermediate_size": 10, "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 100)";
  EXPECT_EQ(read(moe + "}").shape.expert_layers(), 8);
  EXPECT_EQ(read(moe + R"(, "decoder_sparse_step": 2})").shape.expert_layers(), 4);
  EXPECT_EQ(read(moe + R"(, "mlp_only_layers": [0, 3]})").shape.expert_layers(), 6);
  EXPECT_FALSE(parse_config_json(moe + R"(, "mlp_only_layers": [8]})", "x"));
}

// The checkpoints have 688 GB (DeepSeek-V3, with its further layers), 65.2 GB (gpt-oss-120b) and
// 595 GB (Kimi K2.5).
TEST(Config, QuantisedWeightsHaveTheirBytes) {
  const auto bytes = [](const char* name) {
    const ModelShape shape = read(sample(name)).shape;
    return bytes_of(part_weights(shape), shape.stored.value_or(StoredWeights{}));
  };
  EXPECT_NEAR(bytes("good_deepseek_v3") / 1e9, 673, 2);
  EXPECT_NEAR(bytes("good_gpt_oss_120b") / 1e9, 65.2, 0.3);
  EXPECT_NEAR(bytes("good_kimi_k2.5") / 1e9, 594, 3);
  EXPECT_NEAR(bytes("good_minimax_m2.5") / 1e9, 230, 1);
  const double layers = 16 * 60.8e6;
  EXPECT_NEAR(bytes("good_llama_gptq"), layers * 0.519 + 2 * 262.7e6, 5e6);
  EXPECT_NEAR(bytes("good_llama_bitsandbytes"), layers * 0.516 + 2 * 262.7e6, 5e6);
  EXPECT_NEAR(bytes("good_llama_fp8"), layers * 1 + 2 * 262.7e6, 5e6);
  const StoredWeights nvfp4 =
      read(sample("good_llama_nvfp4")).shape.stored.value_or(StoredWeights{});
  EXPECT_EQ(nvfp4.attention, 2);
  EXPECT_EQ(nvfp4.dense, 0.5625);
  EXPECT_EQ(nvfp4.cache, Precision::f8);
  EXPECT_EQ(nvfp4.multiplied, Precision::f4);
  const StoredWeights awq = read(sample("good_llama_awq")).shape.stored.value_or(StoredWeights{});
  EXPECT_NE(awq.plain_parts.find("some of attention"), std::string::npos);
  const ModelConfig unknown = read(qwen2(R"("quantization_config": {"quant_method": "aqlm"})"));
  EXPECT_FALSE(unknown.shape.stored);
  EXPECT_EQ(unknown.account.not_understood.size(), 1U);
}

// Other names of the key, and formats that describe quantisation differently.
TEST(Config, FindsHowWeightsAreQuantised) {
  const auto stored = [](const std::string& more) {
    return read(qwen2(more)).shape.stored.value_or(StoredWeights{});
  };
  const StoredWeights old = stored(
      R"("compression_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
      {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}}}})");
  EXPECT_EQ(old.name, "compressed-tensors, 4 bits");
  EXPECT_EQ(old.dense, 0.5 + 2.0 / 128);
  const StoredWeights mlx = stored(R"("quantization": {"group_size": 64, "bits": 4},
      "quantization_config": {"group_size": 64, "bits": 4})");
  EXPECT_EQ(mlx.name, "mlx, 4 bits");
  EXPECT_EQ(mlx.dense, 0.5 + 4.0 / 64);
  EXPECT_LT(mlx.ends, 2);
  EXPECT_EQ(stored(R"("quantization_config": {"quant_method": "auto-round", "bits": 4})").name,
            "auto-round, 4 bits");
  EXPECT_EQ(stored(R"("quantization_config": {"quant_method": "hqq", "quant_config":
      {"weight_quant_params": {"nbits": 4, "group_size": 64}}})")
                .dense,
            0.5 + 4.0 / 64);
  const Parsed<ModelConfig> dense =
      parse_config_json(qwen2(R"("quantization_config": {"quant_method": "mxfp4"})"), "x");
  EXPECT_EQ(dense.message, "mxfp4 is a format for experts, but the model has none");
  EXPECT_FALSE(read(qwen2(R"("quantization_config": null)")).shape.stored);
}

// An unknown key may be true by default, so the account reports it if it is false.
TEST(Config, KeysThatAreFalseAreNamedUnlessTheyAlwaysAre) {
  const auto rest = [](const std::string& more) {
    return read(qwen2(more)).account.not_understood;
  };
  EXPECT_TRUE(
      rest(R"("is_encoder_decoder": false, "mlp_bias": false, "pruned_heads": {})").empty());
  EXPECT_EQ(rest(R"("has_norms": false)"), std::vector<std::string>{"has_norms=false"});
  EXPECT_EQ(rest(R"("mlp_bias": true)"), std::vector<std::string>{"mlp_bias=true"});
}

TEST(Config, SizesOfNothingAreRefusedOrNamed) {
  const std::string mixtral =
      R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 100,
      "vocab_size": 1000, "num_experts_per_tok": 2, "num_local_experts": )";
  EXPECT_EQ(parse_config_json(mixtral + "0}", "x").message.substr(0, 22), "num_local_experts is 0");
  EXPECT_EQ(parse_config_json(mixtral + R"(8, "v_head_dim": 0})", "x").message.substr(0, 15),
            "v_head_dim is 0");
  const std::string latent = R"({"model_type": "minicpm3", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 100,
      "vocab_size": 1000, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
      "v_head_dim": 8, "q_lora_rank": )";
  EXPECT_TRUE(read(latent + "null}").account.left_out.empty());
  EXPECT_EQ(read(latent + "0}").account.left_out.front().substr(0, 13), "q_lora_rank=0");
}

TEST(Config, KnowsOtherPartsFromKeysThatItDoesNotKnow) {
  const ModelConfig config = read(qwen2(R"("vision_config": {"a": 1}, "gen_head_config": {"a": 1},
      "ffn_config": {"a": 1}, "moe_config": {"experts": 8})"));
  EXPECT_EQ(config.account.left_out.size(), 2U);
  EXPECT_EQ(config.account.not_understood,
            (std::vector<std::string>{"ffn_config={1 keys}", "moe_config={1 keys}"}));
  const ModelConfig two =
      read(R"({"text_config": )" + qwen2(R"("a": null)") + R"(, "llm_config": {"b": 1}})");
  EXPECT_EQ(two.account.left_out, std::vector<std::string>{"llm_config (a second text model)"});
}

// transformers takes null for as many as heads, and uses its default for a missing key.
TEST(Config, KeyValueHeadsThatAreNullAreHeads) {
  const auto heads = [](const std::string& more) {
    return read(R"({"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 16, "intermediate_size": 100, "vocab_size": 1000)" +
                more + "}")
        .shape.kv_heads;
  };
  EXPECT_EQ(heads(""), 8);
  EXPECT_EQ(heads(R"(, "num_key_value_heads": null)"), 16);
  EXPECT_EQ(heads(R"(, "num_key_value_heads": 2)"), 2);
}

// The figures are those of the model card of gpt-oss-120b; DeepSeek-V3 runs on eight H200.
TEST(Config, NullStandsForTheWidthOverTheHeads) {
  EXPECT_EQ(read(R"({"model_type": "ernie4_5", "hidden_size": 1024, "num_hidden_layers": 2,
      "num_attention_heads": 16, "head_dim": null, "intermediate_size": 64, "vocab_size": 10})")
                .shape.head_dim,
            64);
}

// FalconDecoderLayer has one norm or two.
TEST(Config, FalconMayHaveASecondNorm) {
  const auto weights = [](const std::string& more) {
    return total_weights(read(R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_kv_heads": 4, "vocab_size": 10, "multi_query": false)" +
                              more + "}")
                             .shape);
  };
  EXPECT_EQ(weights(R"(, "parallel_attn": false)") - weights(""), 3 * 2 * 64);
  const std::string newer = R"(, "new_decoder_architecture": true)";
  EXPECT_EQ(weights(newer) - weights(newer + R"(, "num_ln_in_parallel_attn": 1)"), 3 * 2 * 64);
}

TEST(Config, QuantisedModelsFitWhereTheyAreRun) {
  const auto memory = [](const char* name, const char* device, ServingLayout layout) {
    const ModelShape shape = read(sample(name)).shape;
    Cluster cluster{.device = find_device(device).value_or(DeviceModel{}),
                    .devices = layout.devices(),
                    .domain = 8,
                    .near_bytes_per_s = 450e9,
                    .far_bytes_per_s = 50e9};
    ServingTask task{.input = 1024, .output = 256};
    take_stored(shape, cluster.device, task);
    return estimate_serving(shape, layout, task, cluster).memory.total() /
           cluster.device.memory_bytes;
  };
  EXPECT_LT(memory("good_gpt_oss_120b", "h100", {}), 1);
  EXPECT_LT(memory("good_deepseek_v3", "h200", {.tp = 8, .ep = 8}), 1);
}

TEST(Config, WhatIsNotUnderstoodIsNamed) {
  const ModelConfig config = read(qwen2(
      R"("rope_theta": 1e6, "eos_token_id": 2, "num_widgets": 3, "is_odd": false, "dtype": null)"));
  EXPECT_EQ(config.account.not_understood,
            (std::vector<std::string>{"num_widgets=3", "is_odd=false"}));
  EXPECT_EQ(std::ranges::count(config.account.used, "hidden_size"), 1);
  const ModelConfig awq = read(sample("good_llama_awq"));
  EXPECT_EQ(std::ranges::count(awq.account.not_understood, "extra_scale=\"NaN\""), 1);
  const ModelConfig deepseek = read(sample("good_deepseek_v3"));
  EXPECT_TRUE(deepseek.account.not_understood.empty());
  EXPECT_EQ(deepseek.account.left_out.size(), 2U);
}

// Keys that most files have, with a value that changes nothing.
TEST(Config, ValuesThatChangeTheAnswerAreNamed) {
  const auto left_out = [](const std::string& more) {
    const std::vector<std::string> all = read(qwen2(more)).account.left_out;
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(left_out(R"("torch_dtype": "bfloat16", "use_cache": true, "n_group": 1, "num_beams": 1,
      "architectures": ["Qwen2ForCausalLM"], "use_bidirectional_attention": null)"),
            "");
  EXPECT_EQ(left_out(R"("torch_dtype": "float32")"),
            "torch_dtype=\"float32\" (--precision says which is planned)");
  EXPECT_EQ(left_out(R"("use_cache": false)"), "use_cache=false (planned with a cache)");
  EXPECT_EQ(left_out(R"("n_group": 8)"),
            "n_group=8 (planned as if tokens chose among all experts)");
  EXPECT_EQ(left_out(R"("num_beams": 4)"), "num_beams=4 (planned with one answer per request)");
  EXPECT_EQ(left_out(R"("use_bidirectional_attention": true)").substr(0, 32),
            "use_bidirectional_attention=true");
  EXPECT_EQ(left_out(R"("architectures": ["Qwen2ForSequenceClassification"])").substr(0, 45),
            "architectures=\"Qwen2ForSequenceClassification");
  EXPECT_EQ(read(qwen2(R"("max_position_embeddings": 2048)")).account.most_tokens, 2048);
}

// transformers uses the sizes of the text; a file with other sizes outside was assembled
// incorrectly.
TEST(Config, SizesOutsideTheTextMustNotContradictIt) {
  const std::string text = qwen2(R"("layer_types": ["full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention"])");
  const auto wrapped = [&text](const std::string& type, const std::string& more) {
    return R"({"model_type": ")" + type + R"(", "text_config": )" + text + ", " + more + "}";
  };
  const auto problem = [&](const std::string& type, const std::string& more) {
    const Parsed<ModelConfig> parsed = parse_config_json(wrapped(type, more), "x");
    return parsed ? "" : parsed.message + " at " + parsed.position;
  };
  EXPECT_EQ(problem("seer", R"("num_hidden_layers": 48)"),
            "num_hidden_layers is 48 at the top level, but is 6 at /text_config, the text part: "
            "make both equal, or remove one at /num_hidden_layers");
  EXPECT_NE(problem("seer", R"("head_dim": 128)").find("is missing at /text_config"),
            std::string::npos);
  EXPECT_NE(problem("seer", R"("layer_types": ["full_attention"])").find("is [1 values] at"),
            std::string::npos);
  // Wrappers repeat sizes, and have keys for their own program.
  const ModelConfig same = read(wrapped(
      "seer", R"("vocab_size": 1000, "hidden_size": 64, "torch_dtype": "bfloat16", "widgets": 3,
      "vision_config": {"hidden_size": 1280}, "tie_word_embeddings": true)"));
  EXPECT_EQ(same.account.not_understood, std::vector<std::string>{"widgets=3"});
  const ModelConfig own = read(wrapped("paligemma", R"("hidden_size": 2048)"));
  EXPECT_EQ(own.account.left_out,
            std::vector<std::string>{"hidden_size=2048 (in /text_config it is 64)"});
}

// Each architecture with the default sizes of transformers 5.24, and the number of weights that its
// class then has. Rows with four layers follow, in which a boolean key that changes the weights has
// its other value. Scales of routers and of residual sums do not count here.
TEST(Config, WeightsAreThoseOfTransformers) {
  std::ifstream file(UNISONO_TEST_DATA "/transformers_weights.tsv");
  int count = 0;
  double weights = 0;
  for (std::string text; file >> weights && std::getline(file, text); ++count) {
    const ModelConfig config = read(text);
    EXPECT_NEAR(total_weights(config.shape) / weights, 1, 1e-6) << text;
    EXPECT_TRUE(config.account.not_understood.empty())
        << config.account.model_type << ": " << config.account.lines().back();
  }
  EXPECT_GT(count, 130);
}

TEST(Config, TheGuideNamesEachArchitecture) {
  std::ifstream file(UNISONO_GUIDE);
  std::ostringstream text;
  text << file.rdbuf();
  for (const ConfigFamily& family : config_families()) {
    const std::string name = "`" + std::string(family.name) + "`";
    EXPECT_NE(text.str().find(name), std::string::npos) << name;
  }
}

// Published weights, total and active, in billions: Gemma 4 26B-A4B 25.2 and 3.8, Step 3.7 Flash
// 196 and 11, GLM-5 744 and 40, DeepSeek-V3.2 671 and 37 with an indexer.
TEST(Config, NewArchitecturesHaveTheWeightsThatArePublished) {
  const std::map<std::string, std::pair<double, double>> published = {
      {"gemma_4", {25.2, 3.8}},
      {"step_3.7", {196, 11}},
      {"glm_5", {744, 41.8}},
      {"deepseek_v3.2", {671.9, 38.4}},
      {"qwen3.5_27b", {26.896, 26.896}}};
  for (const auto& [name, weights] : published) {
    const ModelShape shape = read(sample("good_" + name)).shape;
    EXPECT_NEAR(total_weights(shape) / 1e9, weights.first, 0.003 * weights.first) << name;
    EXPECT_NEAR(active_weights(shape) / 1e9, weights.second, 0.02 * weights.second) << name;
  }
}

// The figures come from model cards and papers: a state of 48 heads of 128 x 128 in 48 layers.
TEST(Config, LayersWithAStateKeepNoTokens) {
  const ModelShape shape = read(sample("good_qwen3.5_27b")).shape;
  EXPECT_EQ(kept_elements(shape, 2000), 2 * kept_elements(shape, 1000));
  EXPECT_EQ(state_bytes(shape), 4.0 * 48 * (48 * 128 * 128 + 3 * (2 * 16 * 128 + 48 * 128)));
  const ModelShape sparse = read(sample("good_deepseek_v3.2")).shape;
  EXPECT_EQ(seen_tokens(sparse, {}, 1000), 1000);
  EXPECT_EQ(seen_tokens(sparse, {}, 100'000), 2048);
  EXPECT_EQ(kept_tokens(sparse, {}, 100'000), 100'000);
}

std::string nemotron(const std::string& more) {
  return R"({"model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 100, "vocab_size": 1000,
      "ssm_state_size": 8, "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2,
      "conv_kernel": 4, )" +
         more + "}";
}

TEST(Config, LayersOfOnePartAreWhatTheirLettersSay) {
  const ModelShape shape =
      read(nemotron(R"("num_hidden_layers": 5, "hybrid_override_pattern": "M-M*-")")).shape;
  const double mamba = 64 * (2 * 32 + 2 * 2 * 8 + 4) + 32 * 64 + 5 * (32 + 2 * 2 * 8) + 12 + 32;
  const double attention = 64 * 16 * (2 * 4 + 2 * 2);
  EXPECT_EQ(total_weights(shape),
            2 * 1000 * 64 + 6 * 64 + 2 * mamba + attention + 2 * (2 * 64 * 100));
  const auto wrong = [](const std::string& more) {
    return parse_config_json(nemotron(more), "x").message;
  };
  EXPECT_EQ(wrong(R"("num_hidden_layers": 4, "hybrid_override_pattern": "M-M*-")"),
            "a pattern of 5 layers for 4");
  EXPECT_EQ(wrong(R"("num_hidden_layers": 2, "hybrid_override_pattern": "M?")"),
            "\"?\" is not a layer type of nemotron_h");
  EXPECT_EQ(wrong(R"("num_hidden_layers": 2)"), "key \"hybrid_override_pattern\" is missing");
}

TEST(Config, HeadsOfOneLayerAreOfAllLayersOfItsKind) {
  const ModelShape shape = read(sample("good_gemma_4")).shape;
  const Heads window = heads_of(shape, {.has_window = true});
  EXPECT_EQ(window, (Heads{16, 8, 256, 256}));
  EXPECT_EQ(heads_of(shape, {}), (Heads{16, 2, 512, 512}));
  EXPECT_EQ(mixer_weights(shape, {}), 2816.0 * 512 * (16 + 2 + 16));  // keys serve as values
}

TEST(Config, SaysWhatIsNotDescribed) {
  const std::map<std::string, std::string> missing = {
      {R"("mamba_d_state": 16)", "mamba_d_state=16 (state-space layers)"},
      {R"("index_topk": 2048)", "index_topk=2048"},
      {R"("pruned_heads": {"0": [1]})",
       "pruned_heads={1 keys} (layers from which heads were removed)"},
      {R"("add_cross_attention": true)", "attention to an encoder"},
      {R"("hidden_size_per_layer_input": 256)", "embeddings for each layer"},
      {R"("layer_types": ["linear_attention", "full_attention"])",
       "\"linear_attention\" in 1 layers"}};
  for (const auto& [key, what] : missing) {
    const Parsed<ModelConfig> parsed = parse_config_json(qwen2(key), "x");
    EXPECT_FALSE(parsed) << key;
    EXPECT_NE(parsed.message.find(what), std::string::npos) << parsed.message;
  }
}

TEST(Config, SaysWhatIsWrong) {
  const auto problem = [](const std::string& text) {
    const Parsed<ModelConfig> parsed = parse_config_json(text, "x");
    EXPECT_FALSE(parsed) << text;
    return parsed.message + " at " + parsed.position;
  };
  EXPECT_EQ(problem(R"({"model_type": "mamba2", "hidden_size": 1})").substr(0, 37),
            "\"mamba2\" is not described here: hidde");
  EXPECT_EQ(problem(sample("bad_no_nope_dim")), "key \"qk_nope_head_dim\" is missing at /");
  EXPECT_EQ(problem(sample("bad_infinite_size")),
            "hidden_size is \"Infinity\", which is no size at /hidden_size");
  EXPECT_EQ(problem(sample("bad_layer_types_short")),
            "layer_types has 3 values for 26 layers at /layer_types");
  EXPECT_EQ(problem(qwen2(R"("layer_types": ["full_attention"])")),
            "layer_types has 1 values for 6 layers at /layer_types");
  EXPECT_NE(problem(sample("bad_two_expert_counts")).find("another name"), std::string::npos);
  EXPECT_NE(problem(qwen2(R"("head_dim": 0)")).find("head_dim is 0"), std::string::npos);
  EXPECT_NE(problem(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 6, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 1,
      "vocab_size": 1})")
                .find("evenly"),
            std::string::npos);
  EXPECT_NE(problem("").find("JSON"), std::string::npos);
}

}  // namespace
}  // namespace unisono::planner
