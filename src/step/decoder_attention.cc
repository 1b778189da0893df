#include "step/decoder_parts.h"

namespace unisono::step {

void add_plain_attention(DecoderParts& p) {
  const Placements heads = {{"tp", shard("heads")}};
  const Placements kv_heads = {{"tp", shard("kv_heads")}};
  const Placements cached = {{"tp", shard("kv_heads")}, {"cp", shard("keys")}};
  p.build.weight("attention_norm", {"width"}, {}, true);
  p.build.weight("query", {"heads", "dim", "width"}, heads, true);
  p.build.weight("key", {"kv_heads", "dim", "width"}, kv_heads, true);
  p.build.weight("value", {"kv_heads", "dim", "width"}, kv_heads, true);
  p.build.weight("attention_output", {"width", "heads", "dim"}, heads, true);
  p.build.activation("normal", {"rows", "width"});
  p.build.activation("q", {"rows", "heads", "dim"});
  p.build.activation("k", {"rows", "kv_heads", "dim"});
  p.build.activation("v", {"rows", "kv_heads", "dim"});
  for (const char* name : {"keys", "values"}) {
    p.build.tensor(Tensor::Kind::cache, name, {"keys", "kv_heads", "dim"}, cached, true);
    if (p.has_windows()) {
      p.build.tensor(Tensor::Kind::cache, std::string("window_") + name,
                     {"window", "kv_heads", "dim"}, kv_heads, true);
    }
    p.build.activation(std::string("all_") + name, {"keys", "kv_heads", "dim"});
  }
  p.build.activation("attended", {"rows", "heads", "dim"});
  p.build.activation("log_sum", {"rows", "heads"});
  p.build.activation("y", {"rows", "width"});
}

void plain_attention(DecoderParts& p, planner::LayerKind kind) {
  const bool has_window = p.has_window(kind);
  p.build.pointwise("attention norm", {"x", "attention_norm"}, "normal", {"rows"});
  p.build.product("query", "normal", "query", "q");
  p.build.product("key", "normal", "key", "k");
  p.build.product("value", "normal", "value", "v");
  const std::string kept = has_window ? "window_" : "";
  keep(p, kept + "keys", "k");
  keep(p, kept + "values", "v");
  if (p.has_ring()) {
    p.build.redistribute("ring", {"keys", "values"}, {"all_keys", "all_values"}, "cp",
                         shard("keys"), replicate(), "ring");
  }
  const std::string prefix = p.has_ring() ? "all_" : kept;
  const std::vector<std::string> seen = {"q", prefix + "keys", prefix + "values"};
  // Two products, of which masks leave only a part.
  const planner::LayerKind seen_kind = has_window ? kind : planner::LayerKind();
  const double there = kept_tokens(p.shape, seen_kind, p.keys());
  const double seen_keys = p.is_prompt ? seen_in_sequence(p.shape, seen_kind, p.keys())
                                       : seen_tokens(p.shape, seen_kind, p.keys());
  p.build.compute({.name = "attention",
                   .reads = seen,
                   .writes = p.is_merged() ? std::vector<std::string>{"attended", "log_sum"}
                                           : std::vector<std::string>{"attended"},
                   .pointwise = {"rows", "heads"},
                   .summed = {has_window ? "window" : "keys"},
                   .flops = 4 * seen_keys / there});
  if (p.is_merged()) {
    p.build.redistribute("attention merged", {"attended", "log_sum"}, {"attended"}, "cp", partial(),
                         replicate(), "merge");
  }
  attention_output(p);
}

void keep(DecoderParts& p, const std::string& cache, const std::string& made) {
  std::vector<std::string> dims = p.build.step().find_tensor(made)->dims;
  if (p.is_prompt) {
    p.build.compute({.name = cache + " kept",
                     .reads = {made},
                     .writes = {cache},
                     .pointwise = std::move(dims),
                     .linear = Node::Linear::together,
                     .renamed = {{"rows", p.build.step().find_tensor(cache)->dims.front()}}});
  } else {
    dims.front() = p.build.step().find_tensor(cache)->dims.front();
    p.build.pointwise(cache + " kept", {cache, made}, cache, std::move(dims));
  }
}

void attention_output(DecoderParts& p) {
  p.build.product("attention output", "attended", "attention_output", "y");
  p.build.redistribute("attention summed", "y", "tp", partial(), replicate());
  p.build.pointwise("attention added", {"x", "y"}, "x", {"rows", "width"}, Node::Linear::together);
}

}  // namespace unisono::step
