#include "planner/config_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/words.h"
#include "planner/config_family.h"
#include "planner/config_quantised.h"
#include "planner/config_shape.h"

namespace unisono::planner {
namespace {

// Keys of what no ModelShape describes, whatever the architecture, and what each stands for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kNotDescribed = {
    {{"attention_k_eq_v", "keys that are values too"},
     {"attn_output_gate", "a gate behind attention"},
     {"enable_moe_block", "experts beside a dense part"},
     {"global_head_dim", "heads of another size in some layers"},
     {"hidden_size_per_layer_input", "embeddings for each layer"},
     {"index_topk", "keys that an indexer chooses (sparse attention)"},
     {"is_encoder_decoder", "an encoder"},
     {"kda_num_heads", "linear attention"},
     {"linear_num_value_heads", "linear attention"},
     {"linear_attn_config", "linear attention"},
     {"mamba_d_state", "state-space layers"},
     {"mamba_num_heads", "state-space layers"},
     {"ssm_cfg", "state-space layers"},
     {"num_global_key_value_heads", "other key-value heads in some layers"},
     {"num_kv_shared_layers", "layers that share a cache"},
     {"num_sliding_attention_heads", "other heads in some layers"},
     {"attention_other_setting", "other heads in some layers"},
     {"per_layer_config", "sizes of each layer"},
     {"share_expert_dim", "shared experts of another width"},
     {"sparse_attention_config", "sparse attention"},
     {"state_size", "state-space layers"},
     {"use_double_wide_mlp", "inner parts of two widths"}}};

// A part of the model that makes text. Others, which see or hear, are left out.
constexpr std::array<std::string_view, 4> kTextParts = {"text_config", "language_config",
                                                        "llm_config", "thinker_config"};

// Words in the names of its other parts: "vision_config", "audio_encoder_config".
constexpr std::array<std::string_view, 18> kOtherParts = {
    "vision", "visual",   "image",     "video",     "audio",      "speech",
    "talker", "code2wav", "token2wav", "projector", "codec",      "tts",
    "vae",    "dit",      "encoder",   "aligner",   "generation", "gen_"};

// Names of what says how the weights are quantised: of most, of older checkpoints of
// compressed-tensors, and of MLX, which writes the first as well.
constexpr std::array<std::string_view, 3> kQuantised = {"quantization_config", "compression_config",
                                                        "quantization"};

constexpr std::array<std::string_view, 6> kPredictionLayers = {
    "num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers",
    "mtp_transformer_layers",   "num_mtp_layers",  "use_mtp"};

std::string known_list() {
  std::string known;
  for (const std::string_view one : known_architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(one);
  }
  return known;
}

bool is_on(const JsonNode& value) {
  if (value.is(JsonValue::Kind::truth)) {
    return value.truth();
  }
  if (value.is(JsonValue::Kind::number)) {
    return value_text(value) != "0";
  }
  if (value.is(JsonValue::Kind::array)) {
    return value.size() > 0;
  }
  return value.is(JsonValue::Kind::text) ||
         (value.is(JsonValue::Kind::object) && !value.keys().empty());
}

// Kinds of layers in "layer_types", by the words that are not of attention as it is described.
std::map<std::string, int> strange_layers(const JsonNode& config) {
  std::map<std::string, int> strange;
  const std::optional<JsonNode> types = config.find("layer_types");
  for (std::size_t i = 0; types && types->is(JsonValue::Kind::array) && i < types->size(); ++i) {
    const JsonNode type = types->item(i);
    if (type.is(JsonValue::Kind::text) && type.text() != "full_attention" &&
        type.text() != "sliding_attention" && type.text() != "chunked_attention") {
      ++strange[type.text()];
    }
  }
  return strange;
}

// Returns the parts that no ModelShape describes, the most telling first.
std::string not_described(const JsonNode& config) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (const auto& [type, count] : strange_layers(config)) {
    add(in_quotes(type) + " in " + std::to_string(count) + " layers");
  }
  for (const auto& [key, what] : kNotDescribed) {
    const std::optional<JsonNode> value = config.find(key);
    if (value && is_on(*value)) {
      add(std::string(key) + "=" + value_text(*value) + " (" + std::string(what) + ")");
    }
  }
  return text;
}

// The text part of a model that has others, its other parts being left out; else the whole.
JsonNode text_part(const JsonNode& config, ConfigAccount& account, std::vector<JsonNode>& outer) {
  JsonNode part = config;
  for (bool is_inner = true; is_inner;) {
    is_inner = false;
    for (const std::string_view key : kTextParts) {
      const std::optional<JsonNode> found = part.find(key);
      if (found && found->is(JsonValue::Kind::object)) {
        account.used.emplace_back(key);
        outer.push_back(part);
        part = *found;
        is_inner = true;
        break;
      }
    }
  }
  return part;
}

void leave_out_parts(ConfigKeys& keys) {
  for (const std::string& key : keys.node().keys()) {
    const auto is_named = [&key](std::string_view word) { return key.find(word) != key.npos; };
    const bool is_part = key.ends_with("_config") && std::ranges::any_of(kOtherParts, is_named) &&
                         keys.node().find(key)->is(JsonValue::Kind::object);
    if (is_part) {
      keys.leave_out(key, "not a part of the text model");
    }
  }
  for (const std::string_view key : kPredictionLayers) {
    const std::optional<JsonNode> value = keys.find(key);
    if (value && is_on(*value)) {
      keys.leave_out(std::string(key) + "=" + value_text(*value),
                     "layers that predict further tokens");
    }
  }
}

// Unset: no key says that the weights are quantised.
std::optional<JsonNode> quantisation_in(ConfigKeys& keys) {
  std::optional<JsonNode> quantised;
  for (const std::string_view key : kQuantised) {
    const std::optional<JsonNode> found = keys.find(key);
    quantised = quantised ? quantised : found;
  }
  return quantised;
}

std::string type_of(const JsonNode& part, const std::vector<JsonNode>& outer) {
  if (const std::optional<JsonNode> type = part.find("model_type");
      type && !type->is(JsonValue::Kind::null)) {
    return type->text();
  }
  return outer.empty() ? part.at("model_type").text() : outer.back().at("model_type").text();
}

[[noreturn]] void refuse_type(const JsonNode& part, const std::string& type, ConfigKeys& keys) {
  std::string missing = not_described(part);
  if (missing.empty()) {
    for (const std::string& key : keys.rest()) {
      missing += (missing.empty() ? "" : ", ") + key;
    }
  }
  const JsonNode place = part.find("model_type") ? part.at("model_type") : part;
  place.fail(in_quotes(type) + " is not described here" + (missing.empty() ? "" : ": " + missing) +
             "; known are " + known_list());
}

ModelConfig read(const JsonNode& config, std::string name) {
  ModelConfig result;
  ConfigAccount& account = result.account;
  std::vector<JsonNode> outer;
  const JsonNode part = text_part(config, account, outer);
  account.model_type = type_of(part, outer);
  ConfigKeys keys(part, account, !outer.empty());
  keys.find("model_type");
  leave_out_parts(keys);
  const ConfigFamily* const family = find_family(account.model_type);
  if (family == nullptr) {
    refuse_type(part, account.model_type, keys);
  }
  if (const std::string missing = not_described(part); !missing.empty()) {
    part.fail(in_quotes(account.model_type) + " with " + missing + " is not described here");
  }
  std::optional<bool> tied;
  std::optional<JsonNode> quantised = quantisation_in(keys);
  std::vector<std::string> rest;
  for (const JsonNode& one : outer) {
    ConfigKeys around(one, account, false);
    leave_out_parts(around);
    around.find("model_type");
    if (around.find("tie_word_embeddings")) {
      tied = around.truth("tie_word_embeddings", false);
      keys.find("tie_word_embeddings");
    }
    if (const std::optional<JsonNode> found = quantisation_in(around)) {
      quantised = found;
    }
    bool is_read = false;
    for (const std::string_view text : kTextParts) {
      const std::optional<JsonNode> found = around.find(text);
      const bool is_part = found && found->is(JsonValue::Kind::object);
      if (is_part && is_read) {
        around.leave_out(text, "a second text model");
      }
      is_read = is_read || is_part;
    }
    std::ranges::move(around.rest(), std::back_inserter(rest));
  }
  result.shape = read_shape(keys, *family, std::move(name), tied);
  if (quantised) {
    result.shape.stored = read_quantised(*quantised, result.shape, account);
  }
  std::ranges::move(keys.rest(), std::back_inserter(account.not_understood));
  std::ranges::move(rest, std::back_inserter(account.not_understood));
  std::ranges::sort(account.used);
  account.used.erase(std::unique(account.used.begin(), account.used.end()), account.used.end());
  return result;
}

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const ConfigFamily& family : config_families()) {
    names.push_back(family.name);
  }
  return names;
}

Parsed<ModelConfig> parse_config_json(std::string_view text, std::string name) {
  return parse_json_as<ModelConfig>(with_quoted_infinities(text), [&](const JsonNode& config) {
    return read(config, std::move(name));
  });
}

}  // namespace unisono::planner
