#include "planner/config_quantised.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/words.h"

namespace unisono::planner {
namespace {

constexpr double kPlainBytes = 2;
constexpr std::size_t kMostNames = 100'000;
constexpr std::size_t kMostExpressions = 64;
constexpr std::size_t kMostPattern = 256;  // in characters

// The storage format of quantised matrices.
struct Method {
  std::string name = {};
  double bytes = kPlainBytes;  // per weight, including scales
  Precision multiplied = Precision::bf16;
  Precision cache = Precision::bf16;
  bool experts_only = false;
  bool has_head = false;               // the head is quantised unless excluded by name
  std::vector<std::string> kept = {};  // names and patterns of unquantised modules
};

double bits_of(const JsonNode& node, std::string_view key, std::int64_t fallback) {
  const std::optional<JsonNode> found = node.find(key);
  return static_cast<double>(found && !found->is(JsonValue::Kind::null) ? found->whole(1, 32)
                                                                        : fallback);
}

// Returns the number of weights per scale; 0 or less, as files write it, means a whole row.
double group_of(const JsonNode& node, std::string_view key, std::int64_t fallback) {
  const std::optional<JsonNode> found = node.find(key);
  const std::int64_t group =
      found && !found->is(JsonValue::Kind::null) ? found->whole(-1, 1 << 20) : fallback;
  return group > 0 ? static_cast<double>(group) : INFINITY;
}

std::string text_of(const JsonNode& node, std::string_view key) {
  const std::optional<JsonNode> found = node.find(key);
  return found && found->is(JsonValue::Kind::text) ? found->text() : std::string();
}

void add_names(const JsonNode& node, std::string_view key, std::vector<std::string>& names) {
  const std::optional<JsonNode> found = node.find(key);
  if (!found || !found->is(JsonValue::Kind::array)) {
    return;
  }
  if (found->size() > kMostNames) {
    found->fail("more than " + std::to_string(kMostNames) + " names");
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    names.push_back(found->item(i).text());
  }
}

std::string bits_text(double bits) {
  return std::to_string(static_cast<int>(bits)) + " bits";
}

// DeepSeek's blocks of 128 x 128 with one f32 scale, or one scale for a whole matrix.
Method fp8(const JsonNode& node) {
  Method method{.name = "fp8", .bytes = 1, .multiplied = Precision::f8};
  if (const auto block = node.find("weight_block_size");
      block && block->is(JsonValue::Kind::array)) {
    double size = 1;
    for (std::size_t i = 0; i < block->size(); ++i) {
      size *= static_cast<double>(block->item(i).whole(1, 1 << 20));
    }
    method.bytes += 4 / size;
  }
  return method;
}

// Each group has a scale in 16 bits, and a zero point with as many bits as a weight.
Method grouped(const JsonNode& node, const std::string& name) {
  const bool is_awq = name == "awq";
  const double bits = bits_of(node, is_awq && node.find("w_bit") ? "w_bit" : "bits", 4);
  const double group =
      group_of(node, is_awq && node.find("q_group_size") ? "q_group_size" : "group_size", 128);
  Method method{.name = name + ", " + bits_text(bits), .bytes = bits / 8 + (2 + bits / 8) / group};
  const std::optional<JsonNode> head = node.find("lm_head");
  method.has_head = head && head->is(JsonValue::Kind::truth) && head->truth();
  return method;
}

// MLX: each group has a scale and a bias in 16 bits, also in the embedding and the head.
Method mlx(const JsonNode& node) {
  const double bits = bits_of(node, "bits", 4);
  return {.name = "mlx, " + bits_text(bits),
          .bytes = bits / 8 + 4 / group_of(node, "group_size", 64),
          .has_head = true};
}

// HQQ: like MLX, except for the ends; its numbers are two levels down.
Method hqq(const JsonNode& node) {
  const JsonNode weights = node.at("quant_config").at("weight_quant_params");
  const double bits = bits_of(weights, "nbits", 4);
  return {.name = "hqq, " + bits_text(bits),
          .bytes = bits / 8 + 4 / group_of(weights, "group_size", 64)};
}

// Reads only the first group of modules, which nearly always contains all of them.
Method compressed_tensors(const JsonNode& node, ConfigAccount& account) {
  Method method{.name = "compressed-tensors", .has_head = true};
  const JsonNode groups = node.at("config_groups");
  if (groups.keys().empty()) {
    groups.fail("no group of weights");
  }
  if (groups.keys().size() > 1) {
    account.not_understood.push_back("quantization_config.config_groups: all but " +
                                     in_quotes(groups.keys().front()));
  }
  const JsonNode weights = groups.member(0).at("weights");
  const double bits = bits_of(weights, "num_bits", 8);
  const std::string strategy = text_of(weights, "strategy");
  const double group = strategy == "group" || strategy == "tensor_group"
                           ? group_of(weights, "group_size", 128)
                           : INFINITY;
  const bool is_float = text_of(weights, "type") == "float";
  // The scales of 4-bit floats have 8 bits, others have 16 bits.
  const double scale = is_float && bits == 4 ? 1 : 2;
  method.name += ", " + bits_text(bits);
  method.bytes = bits / 8 + scale / group;
  const std::optional<JsonNode> inputs = groups.member(0).find("input_activations");
  if (inputs && inputs->is(JsonValue::Kind::object) && is_float) {
    const double input_bits = bits_of(*inputs, "num_bits", 16);
    method.multiplied = input_bits <= 4   ? Precision::f4
                        : input_bits <= 8 ? Precision::f8
                                          : Precision::bf16;
  }
  if (const auto cache = node.find("kv_cache_scheme");
      cache && cache->is(JsonValue::Kind::object) && bits_of(*cache, "num_bits", 16) <= 8) {
    method.cache = Precision::f8;
  }
  add_names(node, "ignore", method.kept);
  return method;
}

Method bitsandbytes(const JsonNode& node) {
  const auto is_on = [&](std::string_view key) {
    const std::optional<JsonNode> found = node.find(key);
    return found && found->is(JsonValue::Kind::truth) && found->truth();
  };
  constexpr double kBlock = 64;
  const double scale = is_on("bnb_4bit_use_double_quant") ? 1 + 4.0 / 256 : 4;
  return is_on("load_in_4bit") || is_on("_load_in_4bit")
             ? Method{.name = "bitsandbytes, 4 bits", .bytes = 0.5 + scale / kBlock}
             : Method{.name = "bitsandbytes, 8 bits", .bytes = 1};
}

Method modelopt(const JsonNode& node) {
  const std::string algorithm = text_of(node, "quant_algo");
  Method method{.name = "modelopt, " + algorithm, .has_head = true};
  if (algorithm.find("FP4") != std::string::npos) {
    method.bytes = 0.5 + 1 / group_of(node, "group_size", 16);
    method.multiplied = Precision::f4;
  } else if (algorithm.find("FP8") != std::string::npos) {
    method.bytes = 1;
    method.multiplied = Precision::f8;
  } else {
    node.fail("quant_algo " + in_quotes(algorithm) + " is neither NVFP4 nor FP8");
  }
  const std::string cache = text_of(node, "kv_cache_quant_algo") + text_of(node, "kv_cache_scheme");
  method.cache = cache.find("FP8") != std::string::npos ? Precision::f8 : Precision::bf16;
  add_names(node, "ignore", method.kept);
  add_names(node, "exclude_modules", method.kept);
  return method;
}

std::optional<Method> method_of(const JsonNode& node, ConfigAccount& account) {
  const std::string name = text_of(node, "quant_method");
  const bool is_mlx = name.empty() && node.find("bits") && node.find("group_size");
  std::optional<Method> method;
  if (name == "fp8" || name == "fbgemm_fp8") {
    method = fp8(node);
  } else if (name == "mxfp4") {
    method = {.name = "mxfp4", .bytes = 0.5 + 1.0 / 32, .experts_only = true};
  } else if (name == "gptq" || name == "awq" || name == "auto-round") {
    method = grouped(node, name);
  } else if (is_mlx) {
    method = mlx(node);
  } else if (name == "hqq") {
    method = hqq(node);
  } else if (name == "compressed-tensors") {
    method = compressed_tensors(node, account);
  } else if (name == "bitsandbytes") {
    method = bitsandbytes(node);
  } else if (name == "modelopt" || name == "modelopt_fp4") {
    method = modelopt(node);
  } else {
    account.not_understood.push_back("quantization_config.quant_method=" + in_quotes(name));
    return std::nullopt;
  }
  for (const char* key : {"modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules"}) {
    add_names(node, key, method->kept);
  }
  return method;
}

// Returns true if a pattern is a plain name.
bool is_name(const std::string& pattern) {
  return !pattern.starts_with("re:") && pattern.find('*') == std::string::npos;
}

// Converts a name with stars, or a regular expression after "re:", into a POSIX expression that
// matches from the beginning. Names match the beginning or the end of a module's name.
std::string expression_of(const std::string& pattern) {
  std::string made;
  if (pattern.starts_with("re:")) {
    made = pattern.substr(3);
    for (std::size_t at = 0; (at = made.find("(?:", at)) != std::string::npos;) {
      made.erase(at + 1, 2);
    }
    return "^(" + made + ")";
  }
  for (const char c : pattern) {
    constexpr std::string_view kSpecial = "\\^$.|?+()[]{}";
    made += c == '*'                                     ? std::string(".*")
            : kSpecial.find(c) != std::string_view::npos ? std::string("\\") + c
                                                         : std::string(1, c);
  }
  return "^" + made + "(\\.|$)|(^|\\.)" + made + "$";
}

// Rejects repetition counts and back-references, whose memory or time could be unbounded.
bool is_harmless(const std::string& pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool is_reference = pattern[i] == '\\' && i + 1 < pattern.size() &&
                              pattern[i + 1] >= '0' && pattern[i + 1] <= '9';
    if (pattern[i] == '\0' || pattern[i] == '{' || is_reference) {
      return false;
    }
  }
  return pattern.size() <= kMostPattern;
}

class Expression {
 public:
  explicit Expression(const std::string& pattern) {
    is_ok_ = is_harmless(pattern) &&
             regcomp(&compiled_, expression_of(pattern).c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() {
    if (is_ok_) {
      regfree(&compiled_);
    }
  }
  bool is_ok() const { return is_ok_; }
  bool matches(const std::string& name) const {
    return is_ok_ && regexec(&compiled_, name.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_ = {};
  bool is_ok_ = false;
};

// The matrices of a layer by their usual names, each with its share of the part.
struct Module {
  const char* name;
  double share;
};
constexpr std::array<Module, 4> kAttention = {
    {{"q_proj", 0.25}, {"k_proj", 0.25}, {"v_proj", 0.25}, {"o_proj", 0.25}}};
constexpr std::array<Module, 3> kInner = {
    {{"gate_proj", 1.0 / 3}, {"up_proj", 1.0 / 3}, {"down_proj", 1.0 / 3}}};

class KeptModules {
 public:
  KeptModules(const std::vector<std::string>& patterns, ConfigAccount& account) {
    for (const std::string& pattern : patterns) {
      if (is_name(pattern)) {
        names_.insert(pattern);
        continue;
      }
      auto expression = std::make_unique<Expression>(pattern);
      if (expression->is_ok() && expressions_.size() < kMostExpressions) {
        expressions_.push_back(std::move(expression));
      } else {
        account.not_understood.push_back("quantization_config: the modules " + in_quotes(pattern));
      }
    }
  }

  // Returns the share of unquantised matrices in the layers of this kind.
  template <typename IsOfKind>
  double share(const ModelShape& shape, std::span<const Module> modules,
               std::initializer_list<std::string_view> places, const IsOfKind& is_of_kind) const {
    double kept = 0;
    int layers = 0;
    const bool is_empty = expressions_.empty() && names_.empty();
    for (int layer = 0; layer < shape.layers && !is_empty; ++layer) {
      if (!is_of_kind(shape.kind(layer))) {
        continue;
      }
      ++layers;
      for (const Module& module : modules) {
        kept += is_kept("layers." + std::to_string(layer) + ".", places, module.name) ? module.share
                                                                                      : 0;
      }
    }
    return layers == 0 ? 0 : kept / layers;
  }
  bool has_head() const { return is_kept("", {"lm_head", "language_model.lm_head"}, ""); }

 private:
  bool is_kept(const std::string& layer, std::initializer_list<std::string_view> places,
               const std::string& module) const {
    constexpr std::array<std::string_view, 3> kModels = {"model.", "language_model.model.",
                                                         "model.language_model."};
    for (const std::string_view model : kModels) {
      for (const std::string_view place : places) {
        const std::string name =
            std::string(layer.empty() ? "" : model) + layer + std::string(place) + module;
        if (is_named(name) || std::ranges::any_of(expressions_, [&](const auto& one) {
              return one->matches(name);
            })) {
          return true;
        }
      }
    }
    return false;
  }

  // Matches the beginning or the end of the name, up to a dot.
  bool is_named(const std::string& name) const {
    if (names_.contains(name)) {
      return true;
    }
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      if (names_.contains(name.substr(0, dot)) || names_.contains(name.substr(dot + 1))) {
        return true;
      }
    }
    return false;
  }

  std::set<std::string> names_;
  std::vector<std::unique_ptr<Expression>> expressions_;
};

}  // namespace

std::optional<StoredWeights> read_quantised(const JsonNode& config, const ModelShape& shape,
                                            ConfigAccount& account) {
  const std::optional<Method> method = method_of(config, account);
  if (!method) {
    return std::nullopt;
  }
  if (method->experts_only && !shape.has_experts()) {
    config.fail(method->name + " is a format for experts, but the model has none");
  }
  const KeptModules kept(method->kept, account);
  StoredWeights stored{
      .name = method->name, .multiplied = method->multiplied, .cache = method->cache};
  const auto any = [](LayerKind) { return true; };
  const auto with_experts = [](LayerKind kind) { return kind.has_experts; };
  const auto dense = [](LayerKind kind) { return !kind.has_experts; };
  const auto add = [&](double& bytes, const char* name, double share, bool is_there) {
    bytes = kPlainBytes * share + method->bytes * (1 - share);
    if (share > 0 && is_there) {
      const bool is_part = share < 1 - 1e-9;
      stored.plain_parts +=
          (stored.plain_parts.empty() ? "" : ", ") + std::string(is_part ? "some of " : "") + name;
    }
  };
  const auto share = [&](std::span<const Module> modules,
                         std::initializer_list<std::string_view> places, const auto& is_of_kind) {
    return method->experts_only ? 1.0 : kept.share(shape, modules, places, is_of_kind);
  };
  const double experts = shape.expert_layers();
  add(stored.attention, "attention", share(kAttention, {"self_attn."}, any), true);
  add(stored.dense, "dense layers", share(kInner, {"mlp.", "feed_forward."}, dense),
      experts < shape.layers);
  const double shared =
      share(kInner, {"mlp.shared_experts.", "mlp.shared_expert.", "feed_forward.shared_expert."},
            with_experts);
  // The router is never quantised.
  const double router = shape.experts / (shape.shared_ffn * 3 + std::max(1, shape.experts));
  add(stored.shared, "shared experts", shared, experts > 0 && shape.shared_ffn > 0);
  stored.shared = stored.shared * (1 - router) + kPlainBytes * router;
  add(stored.experts, "experts",
      kept.share(shape, kInner,
                 {"mlp.experts.0.", "block_sparse_moe.experts.0.", "feed_forward.experts.0.",
                  "mlp.experts."},
                 with_experts),
      experts > 0);
  const bool has_head = method->has_head && !kept.has_head() && !shape.tied;
  const double matrix = shape.hidden * shape.vocabulary;
  const double ends = part_weights(shape).ends;
  stored.ends =
      has_head ? kPlainBytes + (method->bytes - kPlainBytes) * matrix / ends : kPlainBytes;
  stored.plain_parts += std::string(stored.plain_parts.empty() ? "" : ", ") +
                        (experts > 0 ? "router, " : "") +
                        (has_head ? "embedding" : "embedding, head");
  return stored;
}

}  // namespace unisono::planner
