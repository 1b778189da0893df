#include "planner/config_layers.h"

#include <functional>
#include <string>
#include <vector>

#include "base/words.h"

namespace unisono::planner {
namespace {

class LayerReader {
 public:
  LayerReader(ConfigKeys& keys, const ConfigFamily& family, ModelShape& shape)
      : keys_(keys), family_(family), shape_(shape) {}

  void read() {
    read_expert_layers();
    read_windows();
  }

 private:
  // Numbers of layers, in an array.
  std::vector<bool> layer_set(const JsonNode& numbers) const {
    std::vector<bool> set(static_cast<std::size_t>(shape_.layers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      set[static_cast<std::size_t>(numbers.item(i).whole(0, shape_.layers - 1))] = true;
    }
    return set;
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

  ConfigKeys& keys_;
  const ConfigFamily& family_;
  ModelShape& shape_;
};

}  // namespace

void read_layer_kinds(ConfigKeys& keys, const ConfigFamily& family, ModelShape& shape) {
  LayerReader(keys, family, shape).read();
}

}  // namespace unisono::planner
