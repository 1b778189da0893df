#include "planner/config_keys.h"

#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "base/words.h"

namespace unisono::planner {
namespace {

// No published model has a size close to this limit. A product of two sizes fits into 63 bits, and
// a product of six is far inside the range of double.
constexpr std::int64_t kMostSize = std::int64_t{1} << 26U;

constexpr std::array<std::string_view, 3> kInfinities = {"-Infinity", "Infinity", "NaN"};

constexpr std::string_view kNoMatter[] = {"_attn_implementation",
                                          "_commit_hash",
                                          "_name_or_path",
                                          "_attn_implementation_autoset",
                                          "activation_function",
                                          "architectures",
                                          "attention_dropout",
                                          "attn_logit_softcapping",
                                          "attn_scale",
                                          "attn_temperature_tuning",
                                          "auto_map",
                                          "aux_loss_alpha",
                                          "bad_words_ids",
                                          "begin_suppress_tokens",
                                          "cache_implementation",
                                          "chunk_size_feed_forward",
                                          "diversity_penalty",
                                          "do_sample",
                                          "dtype",
                                          "early_stopping",
                                          "encoder_no_repeat_ngram_size",
                                          "ep_size",
                                          "exponential_decay_length_penalty",
                                          "final_logit_softcapping",
                                          "finetuning_task",
                                          "floor_scale",
                                          "for_llm_compressor",
                                          "gradient_checkpointing",
                                          "hidden_act",
                                          "hidden_activation",
                                          "id2label",
                                          "ignore_index",
                                          "init_std",
                                          "initial_context_length",
                                          "initializer_factor",
                                          "initializer_range",
                                          "is_decoder",
                                          "label2id",
                                          "layer_norm_epsilon",
                                          "length_penalty",
                                          "max_length",
                                          "max_position_embeddings",
                                          "min_length",
                                          "n_ctx",
                                          "n_group",
                                          "no_repeat_ngram_size",
                                          "norm_topk_prob",
                                          "num_beam_groups",
                                          "num_beams",
                                          "num_return_sequences",
                                          "original_max_position_embeddings",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "output_router_logits",
                                          "output_scores",
                                          "partial_rotary_factor",
                                          "prefix",
                                          "pretraining_tp",
                                          "problem_type",
                                          "qk_norm_type",
                                          "query_pre_attn_scalar",
                                          "remove_invalid_values",
                                          "repetition_penalty",
                                          "return_dict",
                                          "return_dict_in_generate",
                                          "rotary_dim",
                                          "routed_scaling_factor",
                                          "router_aux_loss_coef",
                                          "router_jitter_noise",
                                          "scale_attn_weights",
                                          "scoring_func",
                                          "seq_aux",
                                          "seq_length",
                                          "suppress_tokens",
                                          "swiglu_limit",
                                          "task_specific_params",
                                          "temperature",
                                          "tf_legacy_loss",
                                          "tie_encoder_decoder",
                                          "tokenizer_class",
                                          "top_k",
                                          "top_p",
                                          "topk_group",
                                          "topk_method",
                                          "torch_dtype",
                                          "torchscript",
                                          "transformers_version",
                                          "typical_p",
                                          "unsloth_fixed",
                                          "unsloth_version",
                                          "use_bfloat16",
                                          "use_cache",
                                          "use_routing_bias",
                                          "vision_soft_tokens_per_image",
                                          "mm_tokens_per_image",
                                          "mrope_section",
                                          "language_model_only",
                                          "use_unified_vision_chunk",
                                          "video_placeholder",
                                          "moe_router_scaling_factor",
                                          "initializer_cutoff_factor",
                                          "attention_softmax_in_fp32",
                                          "embedding_fraction",
                                          "init_device",
                                          "moe_shared_expert_overlap",
                                          "mtp_layers_block_type",
                                          "attn_logit_softcap",
                                          "dim_model_base",
                                          "enable_moe_fp32_combine",
                                          "embedding_multiplier",
                                          "attention_multiplier",
                                          "residual_multiplier",
                                          "logits_scaling",
                                          "logit_scale",
                                          "mamba_chunk_size",
                                          "mamba_ssm_dtype",
                                          "mamba_ssm_cache_dtype",
                                          "mlp_hidden_act",
                                          "mamba_hidden_act",
                                          "n_positions",
                                          "rescale_prenorm_residual",
                                          "residual_in_fp32",
                                          "scale_attention_softmax_in_fp32",
                                          "scale_depth",
                                          "scale_emb",
                                          "attention_value_scale",
                                          "num_logits_to_keep",
                                          "use_mamba_kernels",
                                          "chunk_size",
                                          "model_max_length",
                                          "moe_renormalize",
                                          "moe_router_activation_func",
                                          "num_expert_group",
                                          "indexer_rope_interleave",
                                          "full_attn_alpha_factor",
                                          "full_attn_beta_factor",
                                          "linear_attn_alpha_factor",
                                          "linear_attn_beta_factor",
                                          "mlp_alpha_factor",
                                          "mlp_beta_factor",
                                          "block_size",
                                          "max_seq_len",
                                          "alibi",
                                          "seq_aux",
                                          "use_bidirectional_attention",
                                          "vocab_size_per_layer_input",
                                          "use_moe_router_bias",
                                          "moe_norm_min",
                                          "time_step_min",
                                          "time_step_max",
                                          "time_step_floor",
                                          "time_step_limit",
                                          "activation",
                                          "dropout",
                                          "embedding_initializer_range",
                                          "input_jitter_noise",
                                          "layerdrop",
                                          "norm_epsilon",
                                          "router_scaling_factor",
                                          "swiglu_alpha",
                                          "use_parallel_residual",
                                          "z_loss_coefficient"};

constexpr std::string_view kNoMatterEnds[] = {"_token_id", "_token_ids", "_token_index",
                                              "_dropout",  "_pdrop",     "_eps",
                                              "_theta",    "_loss_coef", "_soft_tokens"};
constexpr std::string_view kNoMatterBeginnings[] = {"rope_", "summary_", "yarn_"};

// Keys that have no effect while they are false, the default in transformers.
constexpr std::string_view kOffByDefault[] = {"_remove_final_layer_norm",
                                              "apply_residual_connection_post_layernorm",
                                              "attention_bias",
                                              "conv_bias",
                                              "is_encoder_decoder",
                                              "mamba_proj_bias",
                                              "mlp_bias",
                                              "mtp_use_dedicated_embeddings",
                                              "qk_layernorm",
                                              "reorder_and_upcast_attn",
                                              "scale_attn_by_inverse_layer_idx",
                                              "slow_but_exact",
                                              "use_bias",
                                              "use_mrope",
                                              "use_sliding_window"};

// Returns true if the value has no effect. `false` only counts for the keys above: any other key
// may be true by default.
bool is_off(std::string_view key, const JsonNode& value) {
  const bool is_false = value.is(JsonValue::Kind::truth) && !value.truth();
  return value.is(JsonValue::Kind::null) ||
         (is_false && std::ranges::find(kOffByDefault, key) != std::end(kOffByDefault)) ||
         (value.is(JsonValue::Kind::array) && value.size() == 0) ||
         (value.is(JsonValue::Kind::object) && value.keys().empty());
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

}  // namespace

bool is_of_no_matter(std::string_view key) {
  const auto ends = [&](std::string_view end) { return key.ends_with(end); };
  const auto begins = [&](std::string_view beginning) { return key.starts_with(beginning); };
  return std::ranges::find(kNoMatter, key) != std::end(kNoMatter) ||
         std::ranges::any_of(kNoMatterEnds, ends) ||
         std::ranges::any_of(kNoMatterBeginnings, begins);
}

std::string value_text(const JsonNode& value) {
  if (value.is(JsonValue::Kind::null)) {
    return "null";
  }
  if (value.is(JsonValue::Kind::truth)) {
    return value.truth() ? "true" : "false";
  }
  if (value.is(JsonValue::Kind::number)) {
    return json_number(value.number(-1e308, 1e308));
  }
  if (value.is(JsonValue::Kind::text)) {
    return in_quotes(value.text());
  }
  const bool is_array = value.is(JsonValue::Kind::array);
  return is_array ? "[" + std::to_string(value.size()) + " values]"
                  : "{" + std::to_string(value.keys().size()) + " keys}";
}

bool are_equal(const JsonNode& one, const JsonNode& other) {
  if (one.is(JsonValue::Kind::array) && other.is(JsonValue::Kind::array)) {
    bool equal = one.size() == other.size();
    for (std::size_t i = 0; equal && i < one.size(); ++i) {
      equal = are_equal(one.item(i), other.item(i));
    }
    return equal;
  }
  if (one.is(JsonValue::Kind::object) && other.is(JsonValue::Kind::object)) {
    bool equal = one.keys().size() == other.keys().size();
    for (std::size_t i = 0; equal && i < one.keys().size(); ++i) {
      const std::optional<JsonNode> member = other.find(one.keys()[i]);
      equal = member && are_equal(one.member(i), *member);
    }
    return equal;
  }
  return value_text(one) == value_text(other);
}

std::vector<std::string> ConfigAccount::lines() const {
  std::vector<std::string> lines;
  if (!model_type.empty()) {
    lines.push_back("config.json: " + std::to_string(used.size()) + " keys used, as of " +
                    model_type);
  }
  if (!assumed.empty()) {
    lines.push_back("assumed, as the file does not say it: " + listed(assumed));
  }
  if (!left_out.empty()) {
    lines.push_back("left out: " + listed(left_out));
  }
  if (!not_understood.empty()) {
    lines.push_back("not understood, and so without effect: " + listed(not_understood));
  }
  return lines;
}

std::string with_quoted_infinities(std::string_view text) {
  std::string made;
  bool is_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_text && c == '\\' && i + 1 < text.size()) {
      made += c;
      made += text[++i];
      continue;
    }
    is_text = is_text != (c == '"');
    const auto is_here = [&](std::string_view word) { return text.substr(i).starts_with(word); };
    const auto* const word =
        is_text ? kInfinities.end() : std::ranges::find_if(kInfinities, is_here);
    if (word == kInfinities.end()) {
      made += c;
    } else {
      made += '"' + std::string(*word) + '"';
      i += word->size() - 1;
    }
  }
  return made;
}

bool ConfigKeys::has(std::string_view key) const {
  const std::optional<JsonNode> found = config_.find(key);
  return found && !found->is(JsonValue::Kind::null);
}

std::optional<JsonNode> ConfigKeys::find(std::string_view key) {
  requested_.emplace(key);
  const std::optional<JsonNode> found = config_.find(key);
  if (!found) {
    return std::nullopt;
  }
  if (used_.emplace(key).second && !found->is(JsonValue::Kind::null)) {
    account_.used.emplace_back(key);
  }
  return found->is(JsonValue::Kind::null) ? std::nullopt : found;
}

std::int64_t ConfigKeys::whole(const JsonNode& node, std::string_view key,
                               std::int64_t least) const {
  const std::string name(key);
  if (!node.is(JsonValue::Kind::number)) {
    node.fail(name + " is " + value_text(node) + ", which is no size");
  }
  try {
    return node.whole(least, kMostSize);
  } catch (const JsonProblem& problem) {
    node.fail(name + " is " + value_text(node) + ", not a whole number from " +
              std::to_string(least) + " to " + std::to_string(kMostSize));
  }
}

std::int64_t ConfigKeys::size(std::string_view key) {
  const std::optional<JsonNode> found = find(key);
  if (!found) {
    config_.fail("key " + in_quotes(key) + " is missing");
  }
  return whole(*found, key, 1);
}

std::int64_t ConfigKeys::size_or(std::string_view key, std::int64_t fallback) {
  if (const std::optional<JsonNode> found = find(key)) {
    return whole(*found, key, 1);
  }
  assume(key, std::to_string(fallback));
  return fallback;
}

std::int64_t ConfigKeys::size_of_part(std::string_view key, std::int64_t fallback) {
  return is_part_ && fallback > 0 ? size_or(key, fallback) : size(key);
}

std::int64_t ConfigKeys::count(std::string_view key) {
  const std::optional<JsonNode> found = find(key);
  return found ? whole(*found, key, 0) : 0;
}

bool ConfigKeys::truth(std::string_view key, bool fallback) {
  const std::optional<JsonNode> found = find(key);
  if (found && !found->is(JsonValue::Kind::truth)) {
    found->fail(std::string(key) + " is " + value_text(*found) + ", neither true nor false");
  }
  return found ? found->truth() : fallback;
}

std::string_view ConfigKeys::one_of(std::initializer_list<std::string_view> keys) {
  std::string_view chosen = *keys.begin();
  bool is_found = false;
  for (const std::string_view key : keys) {
    if (!has(key)) {
      continue;
    }
    const JsonNode value = *find(key);
    if (is_found && value_text(value) != value_text(*find(chosen))) {
      value.fail(std::string(key) + " is " + value_text(value) + ", and " + std::string(chosen) +
                 ", which is another name for it, " + value_text(*find(chosen)));
    }
    chosen = is_found ? chosen : key;
    is_found = true;
  }
  return chosen;
}

void ConfigKeys::assume(std::string_view key, const std::string& value) {
  account_.assumed.push_back(std::string(key) + "=" + value);
}

void ConfigKeys::leave_out(std::string_view key, const std::string& why) {
  used_.emplace(key);
  account_.left_out.push_back(std::string(key) + " (" + why + ")");
}

std::vector<std::string> ConfigKeys::rest() {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < config_.keys().size(); ++i) {
    const std::string& key = config_.keys()[i];
    const JsonNode value = config_.member(i);
    if (!used_.contains(key) && !is_of_no_matter(key) && !is_off(key, value)) {
      rest.push_back(in_quotes(key).substr(1, in_quotes(key).size() - 2) + "=" + value_text(value));
    }
  }
  return rest;
}

}  // namespace unisono::planner
