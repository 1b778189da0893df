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

// Keys of parts that no ModelShape describes, in any architecture, and the part that each stands
// for.
constexpr std::pair<std::string_view, std::string_view> kNotDescribed[] = {
    {"add_cross_attention", "attention to an encoder"},
    {"hidden_size_per_layer_input", "embeddings for each layer"},
    {"is_encoder_decoder", "an encoder"},
    {"moe_latent_size", "experts of another width than the model"},
    {"num_kv_shared_layers", "layers that share a cache"},
    {"pruned_heads", "layers from which heads were removed"},
    {"sparse_attention_config", "sparse attention"},
    {"ssm_cfg", "state-space layers"},
    {"use_double_wide_mlp", "inner parts of two widths"}};

// Further such keys, for architectures without linear mixers or indexers.
constexpr std::pair<std::string_view, std::string_view> kNotUsual[] = {
    {"index_topk", "keys that an indexer chooses (sparse attention)"},
    {"kda_num_heads", "linear attention"},
    {"linear_num_value_heads", "linear attention"},
    {"linear_attn_config", "linear attention"},
    {"mamba_d_state", "state-space layers"},
    {"mamba_num_heads", "state-space layers"},
    {"state_size", "state-space layers"}};

// The part of the model that generates text. Vision and audio parts are omitted.
constexpr std::array<std::string_view, 4> kTextParts = {"text_config", "language_config",
                                                        "llm_config", "thinker_config"};

// Words in the names of the other parts: "vision_config", "audio_encoder_config".
constexpr std::array<std::string_view, 18> kOtherParts = {
    "vision", "visual",   "image",     "video",     "audio",      "speech",
    "talker", "code2wav", "token2wav", "projector", "codec",      "tts",
    "vae",    "dit",      "encoder",   "aligner",   "generation", "gen_"};

// Names of the key that describes quantisation: the usual one, that of older compressed-tensors
// checkpoints, and that of MLX, which also writes the usual one.
constexpr std::array<std::string_view, 3> kQuantised = {"quantization_config", "compression_config",
                                                        "quantization"};

constexpr std::array<std::string_view, 6> kPredictionLayers = {
    "num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers",
    "mtp_transformer_layers",   "num_mtp_layers",  "use_mtp"};

// Keys that change what a program does with a model, unless they have one of these values.
struct UsualValues {
  std::string_view key;
  std::array<std::string_view, 4> values;
  std::string_view planned;
};
constexpr UsualValues kUsual[] = {
    {"cache_implementation",
     {"\"hybrid\"", "\"dynamic\"", "\"static\""},
     "a cache in full precision"},
    {"dtype", {"\"bfloat16\"", "\"float16\"", "\"auto\""}, "--precision says which is planned"},
    {"torch_dtype",
     {"\"bfloat16\"", "\"float16\"", "\"auto\""},
     "--precision says which is planned"},
    {"n_group", {"1", "0"}, "planned as if tokens chose among all experts"},
    {"num_expert_group", {"1", "0"}, "planned as if tokens chose among all experts"},
    {"num_beams", {"1"}, "planned with one answer per request"},
    {"num_return_sequences", {"1"}, "planned with one answer per request"},
    {"use_bidirectional_attention",
     {"false", "\"vision\""},
     "planned with attention to earlier tokens"},
    {"use_cache", {"true"}, "planned with a cache"}};

// Top-level sizes that belong to the program around the text part, and may differ from its sizes.
constexpr std::pair<std::string_view, std::string_view> kOfWrapper[] = {
    {"llava", "vocab_size"},      {"vipllava", "vocab_size"}, {"paligemma", "vocab_size"},
    {"paligemma", "hidden_size"}, {"ovis2", "vocab_size"},    {"ovis2", "hidden_size"}};

// Keys of the most tokens per request, the most common name first.
constexpr std::array<std::string_view, 6> kMostTokens = {
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
    "model_max_length"};

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

// Counts the layers in "layer_types" whose names contain a word for something other than the
// described attention.
std::map<std::string, int> strange_layers(const JsonNode& config, const ConfigFamily* family) {
  std::map<std::string, int> strange;
  const std::optional<JsonNode> types = config.find("layer_types");
  for (std::size_t i = 0; types && types->is(JsonValue::Kind::array) && i < types->size(); ++i) {
    const JsonNode type = types->item(i);
    if (type.is(JsonValue::Kind::text) && type.text() != "full_attention" &&
        type.text() != "sliding_attention" && type.text() != "chunked_attention" &&
        !(family != nullptr && family->linear != Linear::none) &&
        !(family != nullptr && family->is_latent && type.text() == "indexed_attention")) {
      ++strange[type.text()];
    }
  }
  return strange;
}

// Returns the parts that no ModelShape describes, most important first.
std::string not_described(const JsonNode& config, const ConfigFamily* family) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (const auto& [type, count] : strange_layers(config, family)) {
    add(in_quotes(type) + " in " + std::to_string(count) + " layers");
  }
  const auto add_key = [&](std::string_view key, std::string_view what) {
    const std::optional<JsonNode> value = config.find(key);
    if (value && is_on(*value)) {
      add(std::string(key) + "=" + value_text(*value) + " (" + std::string(what) + ")");
    }
  };
  for (const auto& [key, what] : kNotDescribed) {
    add_key(key, what);
  }
  const bool is_usual = family == nullptr || family->linear == Linear::none;
  for (const auto& [key, what] : kNotUsual) {
    const bool is_read = key == "index_topk" && family != nullptr && family->is_latent;
    if (is_usual && !is_read) {
      add_key(key, what);
    }
  }
  return text;
}

// Returns the text part of a model with other parts, and reports those as omitted; otherwise
// returns the whole.
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

void leave_out_unusual(ConfigKeys& keys) {
  for (const UsualValues& usual : kUsual) {
    const std::optional<JsonNode> value = keys.node().find(usual.key);
    if (value && !value->is(JsonValue::Kind::null) &&
        std::ranges::find(usual.values, value_text(*value)) == usual.values.end()) {
      keys.leave_out(std::string(usual.key) + "=" + value_text(*value), std::string(usual.planned));
    }
  }
  const std::optional<JsonNode> classes = keys.node().find("architectures");
  for (std::size_t i = 0; classes && classes->is(JsonValue::Kind::array) && i < classes->size();
       ++i) {
    const JsonNode one = classes->item(i);
    const std::string name = one.is(JsonValue::Kind::text) ? one.text() : "";
    const bool has_other_head = name.ends_with("Classification") || name.ends_with("RewardModel") ||
                                name.ends_with("QuestionAnswering");
    if (has_other_head) {
      keys.leave_out("architectures=" + in_quotes(name), "planned with a head of the vocabulary");
    }
  }
}

void read_most_tokens(const JsonNode& config, ConfigAccount& account) {
  for (const std::string_view key : kMostTokens) {
    const std::optional<JsonNode> value = config.find(key);
    if (account.most_tokens_key.empty() && value && value->is(JsonValue::Kind::number)) {
      account.most_tokens_key = key;
      account.most_tokens = value->number(-1e308, 1e308);
    }
  }
}

// Fails if the file gives another size than its text part.
void compare(const ConfigKeys& text, ConfigKeys& around, const std::string& type) {
  const auto place = [](const JsonNode& node) {
    return node.path().empty() ? std::string("the top level") : node.path();
  };
  const auto is_one_of = [](const auto& names, std::string_view key) {
    return std::ranges::find(names, key) != std::end(names);
  };
  for (std::size_t i = 0; i < around.node().keys().size(); ++i) {
    const std::string& key = around.node().keys()[i];
    const JsonNode value = around.node().member(i);
    if (!text.was_requested(key) || value.is(JsonValue::Kind::null) || key == "model_type" ||
        key == "tie_word_embeddings" || is_one_of(kQuantised, key) || is_one_of(kTextParts, key) ||
        is_one_of(kPredictionLayers, key)) {
      continue;
    }
    const bool is_said = text.has(key);
    if (is_said && are_equal(text.node().at(key), value)) {
      around.ignore(key);
      continue;
    }
    const std::string said = is_said ? value_text(text.node().at(key)) : "missing";
    if (std::ranges::find(kOfWrapper, std::pair(std::string_view(type), std::string_view(key))) !=
        std::end(kOfWrapper)) {
      around.leave_out(key + "=" + value_text(value),
                       "in " + place(text.node()) + " it is " + said);
      continue;
    }
    value.fail(key + " is " + value_text(value) + " at " + place(around.node()) + ", but " +
               (is_said && said == value_text(value) ? "has other values" : "is " + said) + " at " +
               place(text.node()) + ", the text part: make both equal, or remove one");
  }
}

// Unset if no key says that the weights are quantised.
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
  std::string missing = not_described(part, nullptr);
  if (missing.empty()) {
    for (const std::string& key : keys.rest()) {
      missing += (missing.empty() ? "" : ", ") + key;
    }
  }
  const JsonNode place = part.find("model_type") ? part.at("model_type") : part;
  place.fail(in_quotes(type) + " is not described here" + (missing.empty() ? "" : ": " + missing) +
             "; docs/guides/plan-a-model.md lists the " + std::to_string(config_families().size()) +
             " architectures that are");
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
  leave_out_unusual(keys);
  read_most_tokens(part, account);
  const ConfigFamily* const family = find_family(account.model_type);
  if (family == nullptr) {
    refuse_type(part, account.model_type, keys);
  }
  if (const std::string missing = not_described(part, family); !missing.empty()) {
    part.fail(in_quotes(account.model_type) + " with " + missing + " is not described here");
  }
  std::optional<bool> tied;
  std::optional<JsonNode> quantised = quantisation_in(keys);
  std::vector<ConfigKeys> arounds;
  for (const JsonNode& one : outer) {
    ConfigKeys& around = arounds.emplace_back(one, account, false);
    leave_out_parts(around);
    leave_out_unusual(around);
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
  }
  result.shape = read_shape(keys, *family, std::move(name), tied);
  if (quantised) {
    result.shape.stored = read_quantised(*quantised, result.shape, account);
  }
  for (const auto& [key, what] : kNotDescribed) {
    keys.ignore(key);  // already read by not_described()
  }
  std::ranges::move(keys.rest(), std::back_inserter(account.not_understood));
  for (ConfigKeys& around : arounds) {
    const std::optional<JsonNode> type = around.node().find("model_type");
    compare(keys, around, type && type->is(JsonValue::Kind::text) ? type->text() : "");
    std::ranges::move(around.rest(), std::back_inserter(account.not_understood));
  }
  std::ranges::sort(account.used);
  account.used.erase(std::unique(account.used.begin(), account.used.end()), account.used.end());
  return result;
}

}  // namespace

Parsed<ModelConfig> parse_config_json(std::string_view text, std::string name) {
  return parse_json_as<ModelConfig>(with_quoted_infinities(text), [&](const JsonNode& config) {
    return read(config, std::move(name));
  });
}

}  // namespace unisono::planner
