#include "step/decoder_parts.h"

namespace unisono::step {
namespace {

using Names = std::vector<std::string>;

// The caches replace keys and values; each of their rows serves all heads.
const Names kCaches = {"latents", "rotary_keys"};
const Names kAllCaches = {"all_latents", "all_rotary_keys"};

std::string query_dim(const DecoderParts& p) {
  return p.shape.latent.query_rank > 0 ? "query_latent" : "width";
}

void add_dims(DecoderParts& p) {
  const planner::LatentAttention& latent = p.shape.latent;
  const auto dim = [&](const char* name, double size) {
    p.build.dim({.name = name, .size = static_cast<std::size_t>(size)});
  };
  if (latent.query_rank > 0) {
    dim("query_latent", latent.query_rank);
  }
  dim("latent", latent.value_rank);
  dim("rotary", latent.rotary_dim);
  dim("plain", latent.plain_dim);
  dim("dim", latent.plain_dim + latent.rotary_dim);
  dim("value_dim", latent.value_dim);
}

void add_weights(DecoderParts& p) {
  const Placements heads = {{"tp", shard("heads")}};
  p.build.weight("attention_norm", {"width"}, {}, true);
  if (p.shape.latent.query_rank > 0) {
    p.build.weight("query_down", {"query_latent", "width"}, {}, true);
    p.build.weight("query_norm", {"query_latent"}, {}, true);
  }
  p.build.weight("query", {"heads", "dim", query_dim(p)}, heads, true);
  p.build.weight("latent_down", {"latent", "width"}, {}, true);
  p.build.weight("latent_norm", {"latent"}, {}, true);
  p.build.weight("rotary_down", {"rotary", "width"}, {}, true);
  p.build.weight("key_up", {"heads", "plain", "latent"}, heads, true);
  p.build.weight("value_up", {"heads", "value_dim", "latent"}, heads, true);
  p.build.weight("attention_output", {"width", "heads", "value_dim"}, heads, true);
}

// Adds the product with one matrix, followed by a norm.
void compress(DecoderParts& p, const std::string& what, const std::string& made) {
  p.build.product(what + " compressed", "normal", what + "_down", made);
  p.build.pointwise(what + " norm", {made, what + "_norm"}, made, {"rows"});
}

// A prompt sees many keys, so it expands them once.
void attend_prompt(DecoderParts& p, const Names& caches) {
  const planner::LatentAttention& latent = p.shape.latent;
  p.build.product("keys made", caches[0], "key_up", "keys_of_heads");
  p.build.product("values made", caches[0], "value_up", "values_of_heads");
  // The causal mask leaves half of the two products.
  p.build.compute_each({.name = "attention",
                        .reads = {"q", "keys_of_heads", caches[1], "values_of_heads"},
                        .writes = {"attended"},
                        .pointwise = {"rows", "heads"},
                        .summed = {"keys"},
                        .flops = latent.plain_dim + latent.rotary_dim + latent.value_dim});
}

void attend_token(DecoderParts& p) {
  const planner::LatentAttention& latent = p.shape.latent;
  p.build.compute_each({.name = "query for latents",
                        .reads = {"q", "key_up"},
                        .writes = {"latent_q"},
                        .pointwise = {"rows", "heads", "latent"},
                        .flops = 2 * latent.plain_dim});
  Names made = {"latent_attended"};
  if (p.is_merged()) {
    made.emplace_back("log_sum");
  }
  p.build.compute_each({.name = "attention",
                        .reads = {"q", "latent_q", kCaches[0], kCaches[1]},
                        .writes = made,
                        .pointwise = {"rows", "heads"},
                        .summed = {"keys"},
                        .flops = 4 * latent.value_rank + 2 * latent.rotary_dim});
  if (p.is_merged()) {
    p.build.redistribute("attention merged", made, {"latent_attended"}, "cp", partial(),
                         replicate(), "merge");
  }
  p.build.product("values of heads", "latent_attended", "value_up", "attended");
}

}  // namespace

void add_latent_attention(DecoderParts& p) {
  add_dims(p);
  add_weights(p);
  p.build.activation("normal", {"rows", "width"});
  if (p.shape.latent.query_rank > 0) {
    p.build.activation("low_q", {"rows", "query_latent"});
  }
  p.build.activation("q", {"rows", "heads", "dim"});
  p.build.activation("low_k", {"rows", "latent"});
  p.build.activation("rotary_k", {"rows", "rotary"});
  for (std::size_t i = 0; i < kCaches.size(); ++i) {
    const char* const dim = i == 0 ? "latent" : "rotary";
    p.build.tensor(Tensor::Kind::cache, kCaches[i], {"keys", dim}, {{"cp", shard("keys")}}, true);
    p.build.activation(kAllCaches[i], {"keys", dim});
  }
  if (p.is_prompt) {
    p.build.activation("keys_of_heads", {"keys", "heads", "plain"});
    p.build.activation("values_of_heads", {"keys", "heads", "value_dim"});
  } else {
    p.build.activation("latent_q", {"rows", "heads", "latent"});
    p.build.activation("latent_attended", {"rows", "heads", "latent"});
    p.build.activation("log_sum", {"rows", "heads"});
  }
  p.build.activation("attended", {"rows", "heads", "value_dim"});
  p.build.activation("y", {"rows", "width"});
}

void latent_attention(DecoderParts& p) {
  p.build.pointwise("attention norm", {"x", "attention_norm"}, "normal", {"rows"});
  if (p.shape.latent.query_rank > 0) {
    compress(p, "query", "low_q");
    p.build.product("query", "low_q", "query", "q");
  } else {
    p.build.product("query", "normal", "query", "q");
  }
  compress(p, "latent", "low_k");
  p.build.product("rotary key", "normal", "rotary_down", "rotary_k");
  keep(p, kCaches[0], "low_k");
  keep(p, kCaches[1], "rotary_k");
  if (p.has_ring()) {
    p.build.redistribute("ring", kCaches, kAllCaches, "cp", shard("keys"), replicate(), "ring");
  }
  if (p.is_prompt) {
    attend_prompt(p, p.has_ring() ? kAllCaches : kCaches);
  } else {
    attend_token(p);
  }
  attention_output(p);
}

}  // namespace unisono::step
