#include "estimate/config_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/words.h"

namespace unisono::estimate {
namespace {

constexpr double kMost = 1e9;

constexpr std::array<std::string_view, 14> kArchitectures = {
    "llama",   "mistral",   "qwen2",       "qwen3",       "gemma",   "gemma2",  "gemma3_text",
    "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "kimi_k2", "gpt_oss", "gpt2"};

double value_of(const JsonNode& config, std::string_view key, double fallback) {
  const std::optional<JsonNode> found = config.find(key);
  return found && !found->is(JsonValue::Kind::null) ? found->number(0, kMost) : fallback;
}

int count_of(const JsonNode& config, std::string_view key, int fallback) {
  const std::optional<JsonNode> found = config.find(key);
  return found && !found->is(JsonValue::Kind::null) ? static_cast<int>(found->whole(0, 1'000'000))
                                                    : fallback;
}

// GPT-2 has names of its own for the same sizes.
std::string_view key_of(std::string_view architecture, std::string_view key) {
  if (architecture != "gpt2") {
    return key;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {
      {{"hidden_size", "n_embd"},
       {"num_hidden_layers", "n_layer"},
       {"num_attention_heads", "n_head"}}};
  const auto* found =
      std::ranges::find(kNames, key, &std::pair<std::string_view, std::string_view>::first);
  return found == kNames.end() ? key : found->second;
}

void read_experts(const JsonNode& config, ModelShape& shape) {
  shape.experts =
      count_of(config, "num_local_experts",
               count_of(config, "num_experts", count_of(config, "n_routed_experts", 0)));
  if (!shape.has_experts()) {
    return;
  }
  shape.experts_per_token =
      count_of(config, "num_experts_per_tok", count_of(config, "experts_per_token", 1));
  shape.expert_ffn = value_of(config, "moe_intermediate_size", shape.ffn);
  shape.shared_ffn = count_of(config, "n_shared_experts", 0) * shape.expert_ffn;
  shape.dense_layers = count_of(config, "first_k_dense_replace", 0);
}

ModelShape read(const JsonNode& config, std::string name) {
  const std::string& architecture = config.at("model_type").text();
  if (std::ranges::find(kArchitectures, architecture) == kArchitectures.end()) {
    std::string known;
    for (const std::string_view one : kArchitectures) {
      known += (known.empty() ? "" : ", ") + std::string(one);
    }
    config.at("model_type")
        .fail(in_quotes(architecture) + " is an architecture that is not known here; known are " +
              known);
  }
  const auto size = [&](std::string_view key) {
    return config.at(key_of(architecture, key)).whole(1, static_cast<std::int64_t>(kMost));
  };
  ModelShape shape;
  shape.name = std::move(name);
  shape.layers = static_cast<int>(std::min<std::int64_t>(size("num_hidden_layers"), 100'000));
  shape.hidden = static_cast<double>(size("hidden_size"));
  shape.heads = static_cast<int>(std::min<std::int64_t>(size("num_attention_heads"), 1'000'000));
  shape.vocabulary = static_cast<double>(size("vocab_size"));
  shape.kv_heads = count_of(config, "num_key_value_heads", shape.heads);
  shape.head_dim = value_of(config, "head_dim", shape.hidden / shape.heads);
  shape.gated = architecture != "gpt2";
  shape.ffn = value_of(config, "intermediate_size", 4 * shape.hidden);
  if (const std::optional<JsonNode> tied = config.find("tie_word_embeddings")) {
    shape.tied = tied->truth();
  } else {
    shape.tied = architecture == "gpt2";
  }
  if (architecture == "gpt_oss") {
    shape.window = value_of(config, "sliding_window", 0);
  }
  shape.latent = {.query_rank = value_of(config, "q_lora_rank", 0),
                  .value_rank = value_of(config, "kv_lora_rank", 0),
                  .plain_dim = value_of(config, "qk_nope_head_dim", 0),
                  .rotary_dim = value_of(config, "qk_rope_head_dim", 0),
                  .value_dim = value_of(config, "v_head_dim", 0)};
  read_experts(config, shape);
  if (const std::string problem = problem_of(shape); !problem.empty()) {
    config.fail(problem);
  }
  return shape;
}

}  // namespace

std::vector<std::string_view> known_architectures() {
  return {kArchitectures.begin(), kArchitectures.end()};
}

Parsed<ModelShape> parse_config_json(std::string_view text, std::string name) {
  return parse_json_as<ModelShape>(
      text, [&](const JsonNode& config) { return read(config, std::move(name)); });
}

}  // namespace unisono::estimate
