#include "planner/config_layers.h"

#include <charconv>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/words.h"

namespace unisono::planner {
namespace {

// Parses a layer number. Unset if the text is something else.
std::optional<int> layer_number(std::string_view text, int layers) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 && number < layers ? std::optional(number) : std::nullopt;
}

class LayerReader {
 public:
  LayerReader(ConfigKeys& keys, const ConfigFamily& family, ModelShape& shape)
      : keys_(keys), family_(family), shape_(shape) {}

  void read() {
    shape_.kinds.assign(static_cast<std::size_t>(shape_.layers), {.has_experts = true});
    if (family_.has_single_parts) {
      read_single_parts();
      return;
    }
    read_expert_layers();
    read_mixers();
    read_windows();
    read_layer_sizes();
  }

 private:
  // Reads an array of layer numbers.
  std::vector<bool> layer_set(const JsonNode& numbers) const {
    std::vector<bool> set(static_cast<std::size_t>(shape_.layers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      set[static_cast<std::size_t>(numbers.item(i).whole(0, shape_.layers - 1))] = true;
    }
    return set;
  }

  void read_expert_layers() {
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
    if (const std::optional<JsonNode> listed = keys_.find("mlp_layer_types")) {
      check_length(*listed, "mlp_layer_types");
      keep([&](int i) { return listed->item(static_cast<std::size_t>(i)).text() != "dense"; });
      keys_.find("first_k_dense_replace");
      keys_.find("mlp_only_layers");
      return;
    }
    if (family_.experts == Experts::deepseek && read_listed_experts(keep)) {
      return;
    }
    if (family_.experts == Experts::deepseek) {
      const std::string_view key = keys_.one_of({"first_k_dense_replace", "moe_layer_start_index"});
      const std::int64_t dense = keys_.has(key) ? keys_.count(key) : family_.dense_layers;
      if (!keys_.has(key)) {
        keys_.assume(key, std::to_string(dense));
      }
      if (dense > shape_.layers) {
        keys_.node().fail(std::string(key) + " is " + std::to_string(dense) + ", more than the " +
                          std::to_string(shape_.layers) + " layers");
      }
      const std::string_view interval = keys_.one_of({"moe_layer_freq", "moe_layer_interval"});
      const int period = static_cast<int>(keys_.has(interval) ? keys_.size(interval) : 1);
      const int first = interval == "moe_layer_interval" ? period - 1 : 0;
      // -1 means the last layer.
      const std::optional<JsonNode> end = keys_.find("moe_layer_end_index");
      const std::int64_t last = end ? end->whole(-1, shape_.layers) : -1;
      keep([&](int i) { return i >= dense && (last < 0 || i <= last) && i % period == first; });
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

  void check_length(const JsonNode& list, std::string_view key) const {
    if (list.size() < static_cast<std::size_t>(shape_.layers)) {
      list.fail(std::string(key) + " has " + std::to_string(list.size()) + " values for " +
                std::to_string(shape_.layers) + " layers");
    }
  }

  // Reads "moe_layer_freq" as one number per layer, or "moe_layers_enum" as a text of layer
  // numbers.
  template <typename Keep>
  bool read_listed_experts(const Keep& keep) {
    const std::optional<JsonNode> each = keys_.node().find("moe_layer_freq");
    if (each && each->is(JsonValue::Kind::array)) {
      keys_.find("moe_layer_freq");
      check_length(*each, "moe_layer_freq");
      keep([&](int i) { return each->item(static_cast<std::size_t>(i)).whole(0, 1) == 1; });
      return true;
    }
    const std::optional<JsonNode> listed = keys_.find("moe_layers_enum");
    if (!listed || !listed->is(JsonValue::Kind::text)) {
      return false;
    }
    std::vector<bool> set(shape_.kinds.size());
    // Layers that predict further tokens come after the others.
    std::istringstream words(listed->text());
    for (std::string word; std::getline(words, word, ',');) {
      const std::optional<int> place = layer_number(word, 2 * shape_.layers);
      if (!place) {
        listed->fail("moe_layers_enum has " + in_quotes(word) + ", which is not a layer");
      }
      if (*place < shape_.layers) {
        set[static_cast<std::size_t>(*place)] = true;
      }
    }
    keep([&](int i) { return bool{set[static_cast<std::size_t>(i)]}; });
    return true;
  }

  // Reads a letter or a word for each layer, which mixes tokens or is an inner part.
  void read_single_parts() {
    const std::optional<JsonNode> pattern = keys_.find("hybrid_override_pattern");
    const std::optional<JsonNode> listed =
        keys_.find(keys_.one_of({"layers_block_type", "layer_types"}));
    if (!pattern && !listed) {
      keys_.node().fail("key \"hybrid_override_pattern\" is missing");
    }
    std::vector<std::string> words;
    if (listed) {
      check_length(*listed, "layers_block_type");
      for (std::size_t i = 0; i < shape_.kinds.size(); ++i) {
        words.push_back(listed->item(i).text());
      }
    } else {
      for (const char letter : pattern->text()) {
        words.emplace_back(1, letter);
      }
    }
    if (words.size() != shape_.kinds.size()) {
      (pattern ? *pattern : *listed)
          .fail("a pattern of " + std::to_string(words.size()) + " layers for " +
                std::to_string(shape_.layers));
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      shape_.kinds[i] = single_part(words[i], pattern ? *pattern : *listed);
    }
  }

  LayerKind single_part(const std::string& word, const JsonNode& place) const {
    if (word == "M" || word == "mamba" || word == "linear_attention") {
      return {.mixer = Mixer::linear, .has_inner = false};
    }
    if (word == "*" || word == "attention" || word == "full_attention") {
      return {.has_inner = false};
    }
    if (word == "-" || word == "mlp") {
      return {.mixer = Mixer::none};
    }
    if ((word == "E" || word == "moe") && shape_.has_experts()) {
      return {.has_experts = true, .mixer = Mixer::none};
    }
    place.fail(in_quotes(word) + " is not a layer type of " + std::string(family_.name));
  }

  // Reads which layers have a linear mixer instead of attention.
  void read_mixers() {
    if (family_.linear == Linear::none) {
      return;
    }
    const auto set = [&](const auto& is_linear) {
      for (int i = 0; i < shape_.layers; ++i) {
        shape_.kinds[static_cast<std::size_t>(i)].mixer =
            is_linear(i) ? Mixer::linear : Mixer::attention;
      }
    };
    const std::string_view key =
        keys_.one_of({"layer_types", "layers_block_type", "attn_type_list"});
    if (const std::optional<JsonNode> types = keys_.find(key)) {
      check_length(*types, key);
      keys_.find("full_attention_interval");
      keys_.find("full_attn_idxs");
      set([&](int i) {
        const JsonNode type = types->item(static_cast<std::size_t>(i));
        return type.is(JsonValue::Kind::number)
                   ? type.whole(0, 1) == 0
                   : type.text() != "full_attention" && type.text() != "attention";
      });
      return;
    }
    if (const std::optional<JsonNode> listed = attention_layers()) {
      // Kimi numbers layers from 1.
      const int first = family_.linear == Linear::kimi ? 1 : 0;
      std::vector<bool> is_attention(shape_.kinds.size());
      for (std::size_t i = 0; i < listed->size(); ++i) {
        const std::int64_t place = listed->item(i).whole(first, shape_.layers - 1 + first);
        is_attention[static_cast<std::size_t>(place - first)] = true;
      }
      set([&](int i) { return !is_attention[static_cast<std::size_t>(i)]; });
      return;
    }
    const auto period = static_cast<int>(keys_.has("full_attention_interval")
                                             ? keys_.size("full_attention_interval")
                                             : family_.attention_period);
    keys_.assume("layers of attention",
                 period == 0 ? "none" : "every " + std::to_string(period) + "th");
    set([period](int i) { return period == 0 || (i + 1) % period != 0; });
  }

  std::optional<JsonNode> attention_layers() {
    if (const std::optional<JsonNode> nested = keys_.find("linear_attn_config")) {
      return nested->find("full_attn_layers");
    }
    return keys_.find(keys_.one_of({"attn_layer_indices", "full_attn_idxs"}));
  }

  // Reads "per_layer_config": the head sizes of layers with a window, or of all others.
  void read_layer_sizes() {
    const std::optional<JsonNode> sizes = keys_.find("per_layer_config");
    if (sizes && shape_.window_heads.queries == 0) {
      shape_.window_heads = heads_of(shape_, {});
    }
    for (std::size_t i = 0; sizes && i < sizes->keys().size(); ++i) {
      const JsonNode one = sizes->member(i);
      const std::optional<int> layer = layer_number(sizes->keys()[i], shape_.layers);
      if (!layer) {
        one.fail(in_quotes(sizes->keys()[i]) + " is not a layer");
      }
      const LayerKind kind = shape_.kinds[static_cast<std::size_t>(*layer)];
      for (std::size_t k = 0; k < one.keys().size(); ++k) {
        set_head_size(kind, one.keys()[k], one.member(k));
      }
    }
  }

  void set_head_size(LayerKind kind, const std::string& key, const JsonNode& value) {
    constexpr int kMost = 1 << 16;
    const auto size = static_cast<int>(value.whole(1, kMost));
    Heads& window = shape_.window_heads;
    if (key == "head_dim") {
      (kind.has_window ? window.dim : shape_.head_dim) = size;
      (kind.has_window ? window.value_dim : shape_.value_dim) = size;
    } else if (key == "num_key_value_heads") {
      (kind.has_window ? window.keys : shape_.kv_heads) = size;
    } else if (key == "num_attention_heads") {
      (kind.has_window ? window.queries : shape_.heads) = size;
    } else {
      value.fail(in_quotes(key) + " of a layer is not described");
    }
  }

  // Infinity means no window.
  double window_of(std::string_view key) {
    const std::optional<JsonNode> value = keys_.find(key);
    if (value && value->is(JsonValue::Kind::text) && value->text() == "Infinity") {
      return 0;
    }
    if (keys_.node().find(key)) {
      return static_cast<double>(keys_.count(key));  // null: no window
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
    if (const std::optional<JsonNode> types = keys_.node().find("layer_types");
        types && !types->is(JsonValue::Kind::null)) {
      check_length(*types, "layer_types");
    }
    if (is_asked && !is_used) {
      for (const char* key : {"sliding_window", "max_window_layers", "layer_types"}) {
        keys_.find(key);  // the key has no effect
      }
      return;
    }
    if (family_.windows == Windows::none) {
      refuse_windows();
      return;
    }
    const std::string_view size = keys_.one_of({"sliding_window", "sliding_window_size"});
    shape_.window = window_of(shape_.is_chunked ? "attention_chunk_size" : size);
    if (const std::optional<JsonNode> pattern = keys_.find("hybrid_layer_pattern")) {
      check_length(*pattern, "hybrid_layer_pattern");
      for (std::size_t i = 0; i < shape_.kinds.size(); ++i) {
        shape_.kinds[i].has_window = pattern->item(i).whole(0, 1) == 1;
      }
      return;
    }
    if (const std::optional<JsonNode> types = keys_.find("layer_types")) {
      read_layer_types(*types);
      for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern",
                              "max_window_layers", "no_rope_layers", "no_rope_layer_interval"}) {
        keys_.find(key);  // the key has no effect
      }
      return;
    }
    const auto has_window = window_rule();
    for (int i = 0; i < shape_.layers; ++i) {
      shape_.kinds[static_cast<std::size_t>(i)].has_window = shape_.window > 0 && has_window(i);
    }
  }

  // Fails if an architecture without windows declares some.
  void refuse_windows() {
    for (const char* key : {"no_rope_layers", "no_rope_layer_interval"}) {
      keys_.find(key);  // affects positions only
    }
    const std::optional<JsonNode> types = keys_.find("layer_types");
    for (std::size_t i = 0; types && i < types->size(); ++i) {
      const std::string type = types->item(i).text();
      if (family_.linear == Linear::none && type != "full_attention" &&
          (type != "indexed_attention" || shape_.indexer.chosen == 0)) {
        types->item(i).fail(in_quotes(types->item(i).text()) + " is not a layer type of " +
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
        const auto period =
            static_cast<int>(keys_.has(key) ? keys_.size(key) : family_.window_period);
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

  // Layers with rotary positions have chunks; the others see everything.
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

  // Layers that predict further tokens may come after the others.
  void read_layer_types(const JsonNode& types) {
    bool has_window = false;
    for (std::size_t i = 0; i < shape_.kinds.size(); ++i) {
      shape_.kinds[i].has_window = types.item(i).text() != "full_attention";
      has_window = has_window || shape_.kinds[i].has_window;
    }
    if (has_window && shape_.window == 0) {
      types.fail("layer_types has layers with a window, but the file has no window size");
    }
  }

  ConfigKeys& keys_;
  const ConfigFamily& family_;
  ModelShape& shape_;
};

}  // namespace

void read_layer_kinds(ConfigKeys& keys, const ConfigFamily& family, ModelShape& shape) {
  LayerReader(keys, family, shape).read();
}

}  // namespace unisono::planner
