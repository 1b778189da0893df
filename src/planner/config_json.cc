#include "planner/config_json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/words.h"
#include "planner/config_family.h"
#include "planner/config_quantised.h"

namespace unisono::planner {
namespace {

constexpr int kMostLayers = 1000;
constexpr int kMostHeads = 1 << 16;
constexpr int kMostExperts = 100'000;

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

// What of the model no ModelShape describes, most telling first; empty: nothing.
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

class ConfigReader {
 public:
  ConfigReader(ConfigKeys& keys, const ConfigFamily& family, std::string name)
      : keys_(keys), family_(family) {
    shape_.name = std::move(name);
  }

  ModelShape read(std::optional<bool> tied) {
    read_sizes();
    read_experts();
    read_kinds();
    if (tied) {
      shape_.tied = *tied;
    } else if (keys_.find("tie_word_embeddings")) {
      shape_.tied = keys_.truth("tie_word_embeddings", family_.tied);
    } else {
      shape_.tied = family_.tied;
      keys_.assume("tie_word_embeddings", family_.tied ? "true" : "false");
    }
    shape_.vectors = vectors();
    if (const std::string problem = problem_of(shape_); !problem.empty()) {
      keys_.node().fail(problem);
    }
    return std::move(shape_);
  }

 private:
  bool is_gpt2() const { return family_.vectors == Vectors::gpt2; }

  int bounded(std::string_view key, std::int64_t value, int most) const {
    if (value > most) {
      keys_.node().fail(std::string(key) + " is " + std::to_string(value) + ", more than " +
                        std::to_string(most));
    }
    return static_cast<int>(value);
  }

  void read_sizes() {
    const char* const layers = is_gpt2() ? "n_layer" : "num_hidden_layers";
    const char* const hidden = is_gpt2() ? "n_embd" : "hidden_size";
    const char* const heads = is_gpt2() ? "n_head" : "num_attention_heads";
    shape_.layers = bounded(layers, keys_.size_of_part(layers, family_.layers), kMostLayers);
    shape_.hidden = static_cast<double>(keys_.size_of_part(hidden, family_.hidden));
    shape_.heads = bounded(heads, keys_.size_of_part(heads, family_.heads), kMostHeads);
    shape_.vocabulary = static_cast<double>(keys_.size_of_part("vocab_size", family_.vocabulary));
    if (is_gpt2()) {
      shape_.gated = false;
      shape_.kv_heads = shape_.heads;
      shape_.ffn =
          keys_.has("n_inner") ? static_cast<double>(keys_.size("n_inner")) : 4 * shape_.hidden;
    } else {
      shape_.ffn = static_cast<double>(keys_.size_of_part("intermediate_size", family_.ffn));
    }
    family_.is_latent ? read_latent() : read_heads();
  }

  void read_heads() {
    if (!is_gpt2() || keys_.has("num_key_value_heads")) {
      const int fallback = family_.kv_heads > 0 ? family_.kv_heads : shape_.heads;
      shape_.kv_heads = bounded("num_key_value_heads",
                                keys_.size_or("num_key_value_heads", fallback), kMostHeads);
    }
    if (family_.head_dim > 0 || keys_.has("head_dim")) {
      shape_.head_dim = static_cast<double>(keys_.size_or("head_dim", family_.head_dim));
      return;
    }
    const auto hidden = static_cast<std::int64_t>(shape_.hidden);
    if (hidden % shape_.heads != 0) {
      keys_.node().fail("key \"head_dim\" is missing, and " + std::to_string(shape_.heads) +
                        " heads do not divide a width of " + std::to_string(hidden));
    }
    shape_.head_dim = static_cast<double>(hidden / shape_.heads);
  }

  // Keys and values of all heads are made of one short row.
  void read_latent() {
    const auto size = [&](const char* key) { return static_cast<double>(keys_.size(key)); };
    keys_.find("num_key_value_heads");
    keys_.find("head_dim");
    keys_.find("qk_head_dim");
    shape_.latent = {.query_rank = static_cast<double>(keys_.count("q_lora_rank")),
                     .value_rank = size("kv_lora_rank"),
                     .plain_dim = size("qk_nope_head_dim"),
                     .rotary_dim = size("qk_rope_head_dim"),
                     .value_dim = size("v_head_dim")};
    shape_.kv_heads = shape_.heads;
    shape_.head_dim = shape_.latent.plain_dim;
  }

  void read_experts() {
    if (family_.experts == Experts::none) {
      return;
    }
    const std::string_view count =
        keys_.one_of({"n_routed_experts", "num_experts", "num_local_experts"});
    if (keys_.has(count) && keys_.count(count) == 0) {
      return;
    }
    shape_.experts = bounded(count, keys_.size(count), kMostExperts);
    const std::string_view chosen = keys_.one_of({"num_experts_per_tok", "experts_per_token"});
    shape_.experts_per_token = bounded(chosen, keys_.size(chosen), kMostExperts);
    const bool has_own_width =
        family_.experts == Experts::sparse || family_.experts == Experts::deepseek;
    shape_.expert_ffn =
        has_own_width ? static_cast<double>(keys_.size("moe_intermediate_size")) : shape_.ffn;
    read_shared_experts();
  }

  void read_shared_experts() {
    switch (family_.experts) {
      case Experts::deepseek:
        shape_.shared_ffn =
            static_cast<double>(keys_.count("n_shared_experts")) * shape_.expert_ffn;
        break;
      case Experts::sparse:
        shape_.shared_ffn = static_cast<double>(keys_.count("shared_expert_intermediate_size"));
        break;
      case Experts::interleaved:
        shape_.shared_ffn = shape_.expert_ffn;
        shape_.ffn = static_cast<double>(keys_.size_or("intermediate_size_mlp", 16384));
        break;
      case Experts::all:
        if (keys_.count("shared_intermediate_size") > 0) {
          shape_.shared_ffn = static_cast<double>(keys_.count("shared_intermediate_size"));
        }
        break;
      case Experts::none:
        break;
    }
  }

  // Numbers of layers, in an array.
  std::vector<bool> layer_set(const JsonNode& numbers) const {
    std::vector<bool> set(static_cast<std::size_t>(shape_.layers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      set[static_cast<std::size_t>(numbers.item(i).whole(0, shape_.layers - 1))] = true;
    }
    return set;
  }

  void read_kinds() {
    read_expert_layers();
    read_windows();
  }

  void read_expert_layers() {
    shape_.kinds.assign(static_cast<std::size_t>(shape_.layers), {.has_experts = true});
    const auto keep = [&](const auto& has_experts) {
      for (int i = 0; i < shape_.layers; ++i) {
        shape_.kinds[static_cast<std::size_t>(i)].has_experts = has_experts(i);
      }
    };
    const auto step = [&](const char* key) {
      return static_cast<int>(keys_.has(key) ? keys_.size(key) : 1);
    };
    if (!shape_.has_experts()) {
      return;
    }
    if (family_.experts == Experts::deepseek) {
      const std::int64_t dense = keys_.has("first_k_dense_replace")
                                     ? keys_.count("first_k_dense_replace")
                                     : family_.dense_layers;
      if (!keys_.has("first_k_dense_replace")) {
        keys_.assume("first_k_dense_replace", std::to_string(dense));
      }
      if (dense > shape_.layers) {
        keys_.node().fail("first_k_dense_replace is " + std::to_string(dense) + ", more than the " +
                          std::to_string(shape_.layers) + " layers");
      }
      const int period = step("moe_layer_freq");
      keep([&](int i) { return i >= dense && i % period == 0; });
    } else if (family_.experts == Experts::sparse) {
      const int period = step("decoder_sparse_step");
      const std::optional<JsonNode> only = keys_.find("mlp_only_layers");
      const std::vector<bool> dense =
          only ? layer_set(*only) : std::vector<bool>(shape_.kinds.size());
      keep([&](int i) { return !dense[static_cast<std::size_t>(i)] && (i + 1) % period == 0; });
    } else if (family_.experts == Experts::interleaved) {
      const int period = step("interleave_moe_layer_step");
      const std::optional<JsonNode> listed = keys_.find("moe_layers");
      const std::vector<bool> set =
          listed ? layer_set(*listed) : std::vector<bool>(shape_.kinds.size());
      keep([&](int i) {
        return listed ? set[static_cast<std::size_t>(i)] : i % period == period - 1;
      });
    }
  }

  // Infinity stands for no window.
  double window_of(const char* key) {
    const std::optional<JsonNode> value = keys_.find(key);
    if (value && value->is(JsonValue::Kind::text) && value->text() == "Infinity") {
      return 0;
    }
    if (keys_.node().find(key)) {
      return static_cast<double>(keys_.count(key));  // null: none
    }
    if (family_.window > 0) {
      keys_.assume(key, std::to_string(family_.window));
    }
    return family_.window;
  }

  void read_windows() {
    const bool is_asked = family_.windows == Windows::late || family_.windows == Windows::chosen;
    const bool is_used = !is_asked || keys_.truth("use_sliding_window", false);
    shape_.is_chunked = family_.windows == Windows::chunks;
    if (is_asked && !is_used) {
      for (const char* key : {"sliding_window", "max_window_layers", "layer_types"}) {
        keys_.find(key);  // without effect
      }
      return;
    }
    if (family_.windows == Windows::none) {
      refuse_windows();
      return;
    }
    shape_.window = window_of(shape_.is_chunked ? "attention_chunk_size" : "sliding_window");
    if (const std::optional<JsonNode> types = keys_.find("layer_types")) {
      read_layer_types(*types);
      keys_.find("sliding_window_pattern");
      keys_.find("max_window_layers");
      keys_.find("no_rope_layers");
      return;
    }
    const auto has_window = window_rule();
    for (int i = 0; i < shape_.layers; ++i) {
      shape_.kinds[static_cast<std::size_t>(i)].has_window = shape_.window > 0 && has_window(i);
    }
  }

  // Layers of an architecture without windows that say they have some.
  void refuse_windows() {
    const std::optional<JsonNode> types = keys_.find("layer_types");
    for (std::size_t i = 0; types && i < types->size(); ++i) {
      if (types->item(i).text() != "full_attention") {
        types->item(i).fail(in_quotes(types->item(i).text()) + " is no layer of " +
                            std::string(family_.name));
      }
    }
  }

  std::function<bool(int)> window_rule() {
    switch (family_.windows) {
      case Windows::every_second:
        return [](int i) { return i % 2 == 0; };
      case Windows::pattern: {
        const char* const key = keys_.has("sliding_window_pattern") ? "sliding_window_pattern"
                                                                    : "_sliding_window_pattern";
        const auto period = static_cast<int>(keys_.has(key) ? keys_.size(key) : 6);
        return [period](int i) { return (i + 1) % period != 0; };
      }
      case Windows::late: {
        const std::int64_t first = keys_.has("max_window_layers") ? keys_.count("max_window_layers")
                                                                  : family_.first_window;
        return [first](int i) { return i >= first; };
      }
      case Windows::chunks:
        return chunk_rule();
      case Windows::all:
      case Windows::chosen:
      case Windows::none:
        break;
    }
    return [](int) { return true; };
  }

  // Layers that know positions have chunks, the others see everything.
  std::function<bool(int)> chunk_rule() {
    const std::optional<JsonNode> listed = keys_.find("no_rope_layers");
    if (listed && listed->size() > 0) {
      std::vector<bool> has_positions;
      const JsonNode all = keys_.node().at("no_rope_layers");
      if (all.size() < static_cast<std::size_t>(shape_.layers)) {
        all.fail("no_rope_layers has " + std::to_string(all.size()) + " values for " +
                 std::to_string(shape_.layers) + " layers");
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        has_positions.push_back(all.item(i).whole(0, 1) == 1);
      }
      return [has_positions](int i) { return bool{has_positions[static_cast<std::size_t>(i)]}; };
    }
    const auto period = static_cast<int>(
        keys_.has("no_rope_layer_interval") ? keys_.size("no_rope_layer_interval") : 4);
    return [period](int i) { return (i + 1) % period != 0; };
  }

  // Layers that predict further tokens may stand behind the others.
  void read_layer_types(const JsonNode& types) {
    if (types.size() < static_cast<std::size_t>(shape_.layers)) {
      types.fail("layer_types has " + std::to_string(types.size()) + " values for " +
                 std::to_string(shape_.layers) + " layers");
    }
    bool has_window = false;
    for (std::size_t i = 0; i < shape_.kinds.size(); ++i) {
      shape_.kinds[i].has_window = types.item(i).text() != "full_attention";
      has_window = has_window || shape_.kinds[i].has_window;
    }
    if (has_window && shape_.window == 0) {
      types.fail("layer_types has layers with a window, and the file says no size of it");
    }
  }

  double vectors() {
    const double hidden = shape_.hidden;
    const double heads = shape_.heads * shape_.head_dim;
    const double kv_heads = shape_.kv_heads * shape_.head_dim;
    const double queries = heads + 2 * kv_heads;
    double layer = 2 * hidden;
    double ends = hidden;
    const auto bias = [&](bool with_output) {
      if (keys_.truth("attention_bias", false)) {
        layer += shape_.latent.is_used() ? shape_.latent.query_rank + shape_.latent.value_rank +
                                               shape_.latent.rotary_dim + hidden
                                         : queries + (with_output ? hidden : 0);
      }
      if (keys_.truth("mlp_bias", false)) {
        layer += 2 * shape_.ffn + hidden;
      }
    };
    switch (family_.vectors) {
      case Vectors::none:
        break;
      case Vectors::query_bias:
        layer += keys_.truth("qkv_bias", true) ? queries : 0;
        break;
      case Vectors::asked_bias:
        bias(true);
        break;
      case Vectors::four_norms:
        layer += 2 * hidden;
        bias(true);
        break;
      case Vectors::head_norms:
        layer += 2 * shape_.head_dim;
        bias(true);
        break;
      case Vectors::four_head_norms:
        layer += 2 * hidden + 2 * shape_.head_dim;
        bias(true);
        break;
      case Vectors::whole_norms:
        layer += keys_.truth("use_qk_norm", true) ? heads + kv_heads : 0;
        break;
      case Vectors::asked_head_norms:
        layer += keys_.truth("use_qk_norm", false) ? 2 * shape_.head_dim : 0;
        bias(false);
        break;
      case Vectors::sinks:
        layer += shape_.heads + (keys_.truth("attention_bias", true) ? queries + hidden : 0);
        break;
      case Vectors::gpt2:
        layer += 2 * hidden + queries + hidden + shape_.ffn + hidden;
        ends += hidden + static_cast<double>(keys_.size_or("n_positions", 1024)) * hidden;
        break;
    }
    if (shape_.latent.is_used()) {
      layer += shape_.latent.query_rank + shape_.latent.value_rank;
    }
    if (family_.vectors == Vectors::four_head_norms || family_.experts == Experts::interleaved) {
      keys_.find("use_qk_norm");
    }
    return shape_.layers * layer + ends + shape_.expert_layers() * expert_vectors();
  }

  double expert_vectors() const {
    double each = family_.has_score_bias ? shape_.experts : 0;
    if (family_.vectors == Vectors::sinks) {
      each += shape_.experts * (1 + 2 * shape_.expert_ffn + shape_.hidden);
    }
    if (family_.experts == Experts::sparse && shape_.shared_ffn > 0) {
      each += shape_.hidden;  // the gate of the shared expert
    }
    return each;
  }

  ConfigKeys& keys_;
  const ConfigFamily& family_;
  ModelShape shape_;
};

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
    const JsonNode value = *keys.node().find(key);
    const bool is_part = std::ranges::find(kTextParts, key) == kTextParts.end() &&
                         key.ends_with("_config") && key != "quantization_config" &&
                         value.is(JsonValue::Kind::object);
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
  std::optional<JsonNode> quantised = keys.find("quantization_config");
  std::vector<std::string> rest;
  for (const JsonNode& one : outer) {
    ConfigKeys around(one, account, false);
    leave_out_parts(around);
    around.find("model_type");
    if (around.find("tie_word_embeddings")) {
      tied = around.truth("tie_word_embeddings", false);
      keys.find("tie_word_embeddings");
    }
    if (const std::optional<JsonNode> found = around.find("quantization_config")) {
      quantised = found;
    }
    for (const std::string_view text : kTextParts) {
      around.find(text);
    }
    std::ranges::move(around.rest(), std::back_inserter(rest));
  }
  result.shape = ConfigReader(keys, *family, std::move(name)).read(tied);
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
