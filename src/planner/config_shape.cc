#include "planner/config_shape.h"

#include <algorithm>
#include <utility>

#include "planner/config_layers.h"

namespace unisono::planner {
namespace {

constexpr int kMostLayers = 1000;
constexpr int kMostHeads = 1 << 16;
constexpr int kMostExperts = 100'000;

class ConfigReader {
 public:
  ConfigReader(ConfigKeys& keys, const ConfigFamily& family, std::string name)
      : keys_(keys), family_(family) {
    shape_.name = std::move(name);
  }

  ModelShape read(std::optional<bool> tied) {
    read_sizes();
    read_experts();
    read_layer_kinds(keys_, family_, shape_);
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
      // Missing, it has its default; null stands for as many as heads.
      const bool is_null = keys_.node().find("num_key_value_heads").has_value();
      const int fallback = family_.kv_heads > 0 && !is_null ? family_.kv_heads : shape_.heads;
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

}  // namespace

ModelShape read_shape(ConfigKeys& keys, const ConfigFamily& family, std::string name,
                      std::optional<bool> tied) {
  return ConfigReader(keys, family, std::move(name)).read(tied);
}

}  // namespace unisono::planner
