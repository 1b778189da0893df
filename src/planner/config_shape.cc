#include "planner/config_shape.h"

#include <algorithm>
#include <cmath>
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
    if (shape_.ffn == 0 && dense_layers() > 0) {
      keys_.node().fail("key \"intermediate_size\" is missing, and " +
                        std::to_string(dense_layers()) + " layers have no experts");
    }
    if (const std::string problem = problem_of(shape_); !problem.empty()) {
      keys_.node().fail(problem);
    }
    return std::move(shape_);
  }

 private:
  int dense_layers() const {
    int layers = 0;
    for (const auto& [kind, count] : shape_.kind_counts()) {
      layers += kind.has_inner && !kind.has_experts ? count : 0;
    }
    return layers;
  }

  int bounded(std::string_view key, std::int64_t value, int most) const {
    if (value > most) {
      keys_.node().fail(std::string(key) + " is " + std::to_string(value) + ", more than " +
                        std::to_string(most));
    }
    return static_cast<int>(value);
  }

  void read_sizes() {
    const std::string_view layers =
        keys_.one_of({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
    const std::string_view hidden = keys_.one_of({"hidden_size", "n_embd", "n_embed", "d_model"});
    const std::string_view heads = keys_.one_of({"num_attention_heads", "n_head", "n_heads"});
    const std::optional<JsonNode> listed = keys_.node().find("layers_block_type");
    const bool is_listed = !keys_.has(layers) && listed && listed->is(JsonValue::Kind::array);
    shape_.layers =
        is_listed
            ? bounded("layers_block_type", static_cast<std::int64_t>(listed->size()), kMostLayers)
            : bounded(layers, keys_.size_of_part(layers, family_.layers), kMostLayers);
    shape_.hidden = static_cast<double>(keys_.size_of_part(hidden, family_.hidden));
    shape_.heads = bounded(heads, keys_.size_of_part(heads, family_.heads), kMostHeads);
    shape_.vocabulary = static_cast<double>(keys_.size_of_part("vocab_size", family_.vocabulary));
    shape_.gated = family_.gated;
    shape_.gated_experts = family_.gated;
    if (keys_.has("word_embed_proj_dim") &&
        keys_.size("word_embed_proj_dim") != static_cast<std::int64_t>(shape_.hidden)) {
      keys_.node().at("word_embed_proj_dim").fail("the embedding has another width than the model");
    }
    shape_.gates_output = keys_.truth("attn_output_gate", family_.gates_output);
    read_inner();
    family_.is_latent ? read_latent() : read_heads();
    read_window_heads();
    read_linear();
  }

  void read_inner() {
    const std::string_view key = keys_.one_of(
        {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "block_ff_dim"});
    if (family_.ffn_times > 0 && !keys_.has(key)) {
      keys_.find(key);
      shape_.ffn = shape_.hidden * (keys_.has("expansion_ratio")
                                        ? static_cast<double>(keys_.size("expansion_ratio"))
                                        : family_.ffn_times);
      return;
    }
    const bool has_own_experts =
        family_.experts != Experts::none && family_.experts != Experts::all;
    if (has_own_experts && !keys_.has(key) && keys_.has("moe_intermediate_size")) {
      keys_.find(key);
      return;  // a layer without experts fails below
    }
    shape_.ffn = static_cast<double>(keys_.size_of_part(key, family_.ffn));
    if (family_.linear != Linear::short_conv) {
      return;
    }
    // Two thirds of the width, rounded up to whole blocks.
    const std::optional<JsonNode> times = keys_.find("block_ffn_dim_multiplier");
    const auto block = static_cast<double>(keys_.size_or("block_multiple_of", 256));
    if (keys_.truth("block_auto_adjust_ff_dim", true)) {
      const double width = std::floor(2 * shape_.ffn / 3) * (times ? times->number(0.01, 100) : 1);
      shape_.ffn = block * std::ceil(std::floor(width) / block);
    }
  }

  void read_heads() {
    // A missing key has its default; null means as many as heads.
    const std::string_view key = keys_.one_of({"num_key_value_heads", "n_head_kv", "num_kv_heads"});
    const bool is_null = keys_.node().find("num_key_value_heads").has_value();
    if (family_.name == "falcon" || family_.name == "gpt_bigcode") {
      shape_.kv_heads = keys_.truth("multi_query", true) ? 1 : shape_.heads;
      if (keys_.truth("new_decoder_architecture", false)) {
        shape_.kv_heads = bounded(key, keys_.size(key), kMostHeads);
      }
    } else if (family_.kv_heads > 0 || keys_.has(key)) {
      const int fallback = is_null ? shape_.heads : family_.kv_heads;
      shape_.kv_heads = bounded(key, keys_.size_or(key, fallback), kMostHeads);
    } else {
      shape_.kv_heads = shape_.heads;
    }
    shape_.value_dim =
        keys_.has("v_head_dim") ? static_cast<double>(keys_.size("v_head_dim")) : 0.0;
    // As with keys, null means the width over the heads.
    const bool has_dim = keys_.find("head_dim").has_value();
    const bool is_null_dim = !has_dim && keys_.node().find("head_dim").has_value();
    if ((family_.head_dim > 0 && !is_null_dim) || has_dim) {
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

  // Reads the heads of layers with a window if they differ from those of the other layers.
  void read_window_heads() {
    const auto of = [&](std::string_view key, double fallback) {
      return keys_.has(key) ? static_cast<double>(keys_.size(key)) : fallback;
    };
    const Heads whole = heads_of(shape_, {});
    Heads window = whole;
    const auto count = [&](std::string_view key, int fallback) {
      return bounded(key, static_cast<std::int64_t>(of(key, fallback)), kMostHeads);
    };
    window.queries = count(keys_.one_of({"swa_num_attention_heads", "num_sliding_attention_heads"}),
                           whole.queries);
    window.keys = count("swa_num_key_value_heads", family_.window_keys * whole.keys);
    window.dim = of("swa_head_dim", whole.dim);
    window.value_dim =
        of("swa_v_head_dim", keys_.has("swa_head_dim") ? window.dim : whole.value_dim);
    if (const std::optional<JsonNode> other = keys_.find("attention_other_setting")) {
      const auto inner = [&](std::string_view key, std::int64_t fallback) {
        const std::optional<JsonNode> value = other->find(key);
        return value ? value->whole(1, kMostHeads) : fallback;
      };
      window.queries = static_cast<int>(inner("num_attention_heads", whole.queries));
      window.keys =
          static_cast<int>(inner("num_attention_groups", inner("num_key_value_heads", whole.keys)));
      window.dim = static_cast<double>(inner("head_dim", static_cast<std::int64_t>(whole.dim)));
      window.value_dim = window.dim;
    }
    // The keys for the other layers contain the word "global".
    if (keys_.has("global_head_dim") || keys_.has("num_global_key_value_heads")) {
      shape_.head_dim = of("global_head_dim", whole.dim);
      shape_.kv_heads = count("num_global_key_value_heads", whole.keys);
    }
    shape_.keys_are_values = keys_.truth("attention_k_eq_v", false);
    if (window != whole || shape_.keys_are_values || heads_of(shape_, {}) != whole) {
      shape_.window_heads = window;
    }
  }

  void read_linear() {
    const auto size = [&](std::string_view key) { return static_cast<double>(keys_.size(key)); };
    const auto size_or = [&](std::string_view key, std::int64_t fallback) {
      return static_cast<double>(keys_.size_or(key, fallback));
    };
    LinearMixer& linear = shape_.linear;
    switch (family_.linear) {
      case Linear::none:
        break;
      case Linear::delta: {
        const double key_dim = size_or("linear_key_head_dim", 128);
        const double value_dim = size_or("linear_value_head_dim", 128);
        const double heads = size_or("linear_num_value_heads", 32);
        const double keys = size_or("linear_num_key_heads", 16) * key_dim;
        const double values = heads * value_dim;
        const double kernel = size_or("linear_conv_kernel_dim", 4);
        linear = {.columns = 2 * keys + 2 * values + 2 * heads,
                  .rows = values,
                  .small = kernel * (2 * keys + values) + 2 * heads + value_dim,
                  .state = heads * key_dim * value_dim + (kernel - 1) * (2 * keys + values),
                  .dim = key_dim};
        break;
      }
      case Linear::kimi: {
        const std::optional<JsonNode> nested = keys_.find("linear_attn_config");
        const auto of = [&](std::string_view inside, std::string_view key, std::int64_t fallback) {
          const std::optional<JsonNode> value =
              nested ? nested->find(inside) : std::optional<JsonNode>();
          return static_cast<double>(value ? value->whole(1, kMostHeads)
                                           : keys_.size_or(key, fallback));
        };
        const double heads = of("num_heads", "linear_num_heads", 32);
        const double dim = of("head_dim", "linear_head_dim", 128);
        const double kernel = of("short_conv_kernel_size", "linear_conv_kernel_dim", 4);
        const double width = heads * dim;
        linear = {.columns = 3 * width + 2 * dim + heads,
                  .rows = width,
                  .small = 3 * kernel * width + width + heads + dim + 2 * dim * width,
                  .state = width * dim + (kernel - 1) * 3 * width,
                  .dim = dim};
        break;
      }
      case Linear::mamba2: {
        const std::string_view heads_key = keys_.one_of({"mamba_num_heads", "mamba_n_heads"});
        const double heads = size(heads_key);
        const std::string_view dim_key = keys_.one_of({"mamba_head_dim", "mamba_d_head"});
        const bool has_dim =
            keys_.has(dim_key) && keys_.node().find(dim_key)->is(JsonValue::Kind::number);
        const double expand =
            static_cast<double>(keys_.size_or(keys_.one_of({"expand", "mamba_expand"}), 2));
        keys_.find(dim_key);
        const double width = has_dim ? heads * size(dim_key) : expand * shape_.hidden;
        const double state = size(keys_.one_of({"ssm_state_size", "mamba_d_state"}));
        const double groups = size(keys_.one_of({"n_groups", "mamba_n_groups"}));
        const double kernel = size(keys_.one_of({"conv_kernel", "mamba_d_conv"}));
        const bool has_bias = keys_.truth(keys_.one_of({"use_conv_bias", "mamba_conv_bias"}), true);
        const double channels = width + 2 * groups * state;
        linear = {.columns = 2 * width + 2 * groups * state + heads,
                  .rows = width,
                  .small = (kernel + (has_bias ? 1 : 0)) * channels + 3 * heads + width,
                  .state = width * state + (kernel - 1) * channels,
                  .dim = state};
        break;
      }
      case Linear::lightning: {
        const double width = shape_.heads * shape_.head_dim;
        linear = {.columns = 4 * width,
                  .rows = width,
                  .small = width,
                  .state = width * shape_.head_dim,
                  .dim = shape_.head_dim};
        break;
      }
      case Linear::short_conv: {
        const double kernel = size_or("conv_L_cache", 3);
        linear = {.columns = 3 * shape_.hidden,
                  .rows = shape_.hidden,
                  .small = kernel * shape_.hidden,
                  .state = (kernel - 1) * shape_.hidden,
                  .dim = 1};
        break;
      }
    }
  }

  // Keys and values of all heads are expanded from one short row.
  void read_latent() {
    const auto size = [&](const char* key) { return static_cast<double>(keys_.size(key)); };
    keys_.find("num_key_value_heads");
    keys_.find("head_dim");
    keys_.find("qk_head_dim");
    keys_.find("mla_use_nope");
    shape_.latent = {.query_rank = static_cast<double>(keys_.count("q_lora_rank")),
                     .value_rank = size("kv_lora_rank"),
                     .plain_dim = size("qk_nope_head_dim"),
                     .rotary_dim = size("qk_rope_head_dim"),
                     .value_dim = size("v_head_dim")};
    if (keys_.has("q_lora_rank") && shape_.latent.query_rank == 0) {
      keys_.leave_out("q_lora_rank=0", "planned as null: queries that are not compressed");
    }
    shape_.kv_heads = shape_.heads;
    shape_.head_dim = shape_.latent.plain_dim;
    if (keys_.has("index_topk")) {
      shape_.indexer = {.heads = size("index_n_heads"),
                        .dim = size("index_head_dim"),
                        .chosen = size("index_topk")};
      const std::optional<JsonNode> types = keys_.find("indexer_types");
      for (std::size_t i = 0; types && i < types->size(); ++i) {
        if (types->item(i).text() != "full") {
          keys_.leave_out("indexer_types", "layers that share an indexer: counted with one each");
          break;
        }
      }
    }
  }

  void read_experts() {
    if (family_.experts == Experts::none) {
      return;
    }
    const std::string_view count =
        keys_.one_of({"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"});
    const bool may_lack_experts = family_.experts == Experts::sparse || family_.has_dense_part ||
                                  family_.linear == Linear::mamba2;
    if (!keys_.truth("enable_moe_block", true) ||
        (may_lack_experts && keys_.has(count) && keys_.count(count) == 0) ||
        (family_.has_single_parts && !keys_.has(count)) ||
        (family_.has_dense_part && !keys_.has(count))) {
      return;
    }
    shape_.experts = bounded(count, keys_.size(count), kMostExperts);
    const std::string_view chosen =
        keys_.one_of({"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_k",
                      "moe_top_k", "top_k_experts"});
    shape_.experts_per_token = bounded(chosen, keys_.size(chosen), kMostExperts);
    const bool has_own_width =
        family_.experts != Experts::all && family_.experts != Experts::interleaved;
    shape_.expert_ffn =
        has_own_width ? static_cast<double>(keys_.size("moe_intermediate_size")) : shape_.ffn;
    read_shared_experts();
  }

  void read_shared_experts() {
    // Each key gives the width of all shared experts together, or of one.
    for (const char* const whole :
         {"shared_expert_intermediate_size", "shared_intermediate_size",
          "moe_shared_expert_intermediate_size", "share_expert_dim", "share_expert_dims"}) {
      shape_.shared_ffn += static_cast<double>(keys_.count(whole));
    }
    const std::string_view number =
        keys_.one_of({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"});
    const auto shared = static_cast<double>(keys_.count(number));
    shape_.shared_ffn = shape_.shared_ffn > 0 ? shape_.shared_ffn * std::max(1.0, shared)
                                              : shared * shape_.expert_ffn;
    if (family_.experts == Experts::interleaved) {
      shape_.shared_ffn = shape_.expert_ffn;
      shape_.ffn = static_cast<double>(keys_.size_or("intermediate_size_mlp", 16384));
    }
    if (family_.has_dense_part) {
      shape_.shared_ffn = shape_.ffn;
    }
  }

  bool is_asked(const KeyRule& asked) {
    return asked.key.empty() ? asked.fallback : keys_.truth(asked.key, asked.fallback);
  }

  double vectors() {
    const VectorRule& rule = family_.vectors;
    const double hidden = shape_.hidden;
    const double norm = is_asked(rule.weights) ? rule.norm_size * hidden : 0;
    const bool has_inner_bias = is_asked(rule.inner);
    const bool has_head_norms = rule.heads != HeadNorms::none && is_asked(rule.head_norms);
    const bool has_query_bias = is_asked(rule.queries);
    const bool has_output_bias = is_asked(rule.output);
    double sum = shape_.layers * norms() * norm + shape_.expert_layers() * expert_vectors();
    for (const auto& [kind, layers] : shape_.kind_counts()) {
      if (kind.mixer == Mixer::attention) {
        sum += layers * attention_vectors(kind, has_head_norms, has_query_bias, has_output_bias);
      }
      const double inner = kind.has_experts ? shape_.shared_ffn : shape_.ffn;
      if (has_inner_bias && kind.has_inner && inner > 0) {
        sum += layers * ((shape_.gated ? 2 : 1) * inner + hidden);
      }
    }
    sum += is_asked(rule.last_norm) ? norm : 0;
    sum += is_asked(rule.head) ? shape_.vocabulary : 0;
    if (!family_.positions_key.empty()) {
      sum +=
          hidden * (static_cast<double>(keys_.size_or(family_.positions_key, family_.positions)) +
                    family_.more_positions);
    }
    sum += family_.has_embedding_norm ? norm : 0;
    if (family_.windows == Windows::chunks || rule.heads == HeadNorms::each) {
      keys_.find("use_qk_norm");
    }
    return sum;
  }

  // Falcon and StableLM have a second norm unless attention and the inner part share one.
  int norms() {
    if (family_.name == "stablelm" && keys_.truth("use_parallel_residual", false)) {
      return 1;
    }
    if (family_.name != "falcon") {
      return family_.vectors.norms;
    }
    const bool is_parallel = keys_.truth("parallel_attn", true);
    if (keys_.truth("new_decoder_architecture", false)) {
      return keys_.has("num_ln_in_parallel_attn")
                 ? static_cast<int>(keys_.size("num_ln_in_parallel_attn"))
                 : 2;
    }
    return is_parallel ? 1 : 2;
  }

  double attention_vectors(LayerKind kind, bool has_head_norms, bool has_query_bias,
                           bool has_output_bias) const {
    const Heads heads = heads_of(shape_, kind);
    const LatentAttention& latent = shape_.latent;
    const bool has_sinks = family_.has_sinks || (family_.has_window_sinks && kind.has_window);
    double count = has_sinks ? heads.queries : 0;
    if (has_head_norms) {
      count += family_.vectors.heads == HeadNorms::each ? 2 * heads.dim
                                                        : (heads.queries + heads.keys) * heads.dim;
    }
    if (latent.is_used()) {
      count += latent.query_rank + latent.value_rank + 2 * shape_.indexer.dim;
    }
    if (has_query_bias) {
      count += latent.is_used()
                   ? latent.query_rank + latent.value_rank + latent.rotary_dim
                   : ((shape_.gates_output ? 2 : 1) * heads.queries + heads.keys) * heads.dim +
                         heads.keys * heads.value_dim;
    }
    return count + (has_output_bias ? shape_.hidden : 0);
  }

  double expert_vectors() const {
    double each = family_.has_score_bias ? shape_.experts : 0;
    if (family_.has_expert_bias) {
      each += shape_.experts * (1 + 2 * shape_.expert_ffn + shape_.hidden);
    }
    if (family_.experts == Experts::sparse && shape_.shared_ffn > 0) {
      each += shape_.hidden;  // gate of the shared expert
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
