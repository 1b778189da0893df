// Attention of a layer, and how its queries, keys and values move.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

const Dims kHeadRows = {"sequences", "places", "heads"};
const Dims kQueries = {"sequences", "places", "heads", "dim"};
const Dims kKeys = {"sequences", "places", "kv_heads", "dim"};
const Dims kSeen = {"sequences", "seen", "kv_heads", "dim"};

}  // namespace

std::string AttentionMoves::to_heads(const std::string& tensor, const std::string& made,
                                     const char* heads) {
  return p_.moved("to heads", tensor, made, "uly", shard("places"), shard(heads));
}

std::string AttentionMoves::to_rows(const std::string& tensor, const std::string& made,
                                    const char* heads) {
  return p_.moved("to rows", tensor, made, "uly", shard(heads), shard("places"));
}

// The same numbers, whose places are called `to` instead of `from`.
std::string AttentionMoves::with_places(const char* node, const std::string& tensor,
                                        const std::string& made, const char* from, const char* to) {
  build_.compute({.name = node,
                  .reads = {tensor},
                  .writes = {made},
                  .pointwise = {"sequences", from, "kv_heads", "dim"},
                  .linear = Node::Linear::together,
                  .renamed = {{from, to}}});
  return made;
}

std::string AttentionMoves::as_seen(const std::string& tensor, const std::string& made) {
  p_.activation(made, kSeen);
  return with_places("seen", tensor, made, "places", "seen");
}

std::string AttentionMoves::as_made(const std::string& tensor, const std::string& made) {
  p_.activation(made, kKeys);
  return with_places("made", tensor, made, "seen", "places");
}

void AttentionMoves::around(const std::string& keys, const std::string& values, const char* ring) {
  if (p_.task.gathers_keys) {
    build_.redistribute("keys and values", keys, "cp", shard("seen"), replicate());
    build_.redistribute("keys and values", values, "cp", shard("seen"), replicate());
  } else {
    build_.redistribute("keys and values", {keys, values}, {keys, values}, "cp", shard("seen"),
                        replicate(), ring);
  }
}

void AttentionMoves::home(const Dims& sums) {
  if (p_.task.gathers_keys) {
    for (const std::string& one : sums) {
      build_.redistribute("gradients home", one, "cp", partial(), shard("seen"));
    }
  } else {
    build_.redistribute("gradients home", sums, sums, "cp", partial(), shard("seen"), "ring_home");
  }
}

void AttentionHalf::forward() {
  p_.activation(name("attention in"), kLayerRows);
  p_.by_rows("attention norm", {name("x"), name("attention norm")}, name("attention in"),
             kLayerRows);
  p_.enter(name("attention in"));
  p_.product("query", name("attention in"), name("query"), name("q"), kQueries);
  p_.product("key", name("attention in"), own(name("key")), name("k"), kKeys);
  p_.product("value", name("attention in"), own(name("value")), name("v"), kKeys);
  attend();
  p_.product("attention output", name("attended"), name("attention output"), name("y"), kLayerRows);
  p_.leave(name("y"));
  p_.activation(name("middle"), kLayerRows);
  p_.sum("attention added", {name("x"), name("y")}, name("middle"));
}

// The rows of a weight that belong to this rank's heads, of those that all ranks have whole.
std::string AttentionHalf::own(const std::string& weight) {
  return p_.shares_keys
             ? p_.moved("own heads", weight, weight + " here", "tp", replicate(), shard("kv_heads"))
             : weight;
}

void AttentionHalf::attend() {
  const std::string q = moves_.to_heads(name("q"), name("q of heads"), "heads");
  const std::string keys =
      moves_.as_seen(moves_.to_heads(name("k"), name("k of heads"), "kv_heads"), name("keys"));
  const std::string values =
      moves_.as_seen(moves_.to_heads(name("v"), name("v of heads"), "kv_heads"), name("values"));
  moves_.around(keys, values, "ring");
  const bool is_moved = build_.is_wide("uly");
  const std::string out = name(is_moved ? "attended of heads" : "attended");
  const std::string log_sum = name(is_moved ? "log_sum of heads" : "log_sum");
  p_.activation(out, kQueries);
  p_.activation(log_sum, kHeadRows);
  build_.compute({.name = "attention",
                  .reads = {q, keys, values},
                  .writes = {out, log_sum},
                  .pointwise = kHeadRows,
                  .summed = {"seen"},
                  .flops = 2});  // the causal mask leaves half of two products
  moves_.to_rows(out, name("attended"), "heads");
  moves_.to_rows(log_sum, name("log_sum"), "heads");
}

void AttentionHalf::backward() {
  out_ = p_.leave_backward("d " + name("middle"));
  p_.product("d attended", out_, name("attention output"), name("d attended"), kQueries);
  p_.activation(name("delta"), kHeadRows);
  p_.by_rows("delta", {name("attended"), name("d attended")}, name("delta"), kHeadRows);
  const Dims reads = again();
  const bool is_moved = build_.is_wide("uly");
  const std::string dq = name(is_moved ? "d q of heads" : "d q");
  p_.activation(dq, kQueries);
  build_.compute({.name = "d query",
                  .reads = reads,
                  .writes = {dq},
                  .pointwise = kHeadRows,
                  .summed = {"seen"},
                  .flops = 3});
  const Dims sums = {name("d keys"), name("d values")};
  for (const std::string& one : sums) {
    p_.activation(one, kSeen);
  }
  build_.compute({.name = "d keys, d values",
                  .reads = reads,
                  .writes = sums,
                  .pointwise = {"sequences", "seen", "heads"},
                  .summed = {"places"},
                  .flops = 2});
  moves_.home(sums);
  dq_ = moves_.to_rows(dq, name("d q"), "heads");
  dk_ = moves_.to_rows(moves_.as_made(sums[0], name("d k of heads")), name("d k"), "kv_heads");
  dv_ = moves_.to_rows(moves_.as_made(sums[1], name("d v of heads")), name("d v"), "kv_heads");
  to_inputs();
}

// What the backward pass of attention reads, where attention read it.
Dims AttentionHalf::again() {
  const std::string q = moves_.to_heads(name("q"), name("q again"), "heads");
  const std::string k = moves_.to_heads(name("k"), name("k again"), "kv_heads");
  const std::string v = moves_.to_heads(name("v"), name("v again"), "kv_heads");
  const std::string g = moves_.to_heads(name("d attended"), name("d attended of heads"), "heads");
  const std::string log_sum = moves_.to_heads(name("log_sum"), name("log_sum again"), "heads");
  const std::string delta = moves_.to_heads(name("delta"), name("delta of heads"), "heads");
  const std::string keys = moves_.as_seen(k, name("keys again"));
  const std::string values = moves_.as_seen(v, name("values again"));
  moves_.around(keys, values, "ring_with");
  return {q, keys, values, g, log_sum, delta};
}

// From the gradients of queries, keys and values to that of what the layer takes.
void AttentionHalf::to_inputs() {
  const Dims parts = {name("d in by query"), name("d in by key"), name("d in by value")};
  const char* here = p_.shares_keys ? " here" : "";
  p_.product("d attention in", dq_, name("query"), parts[0], kLayerRows);
  p_.product("d attention in", dk_, name("key") + here, parts[1], kLayerRows);
  p_.product("d attention in", dv_, name("value") + here, parts[2], kLayerRows);
  norm_backward("attention norm", name("x"),
                p_.enter_backward(added(parts, name("d attention in"))), "d " + name("middle"),
                "d " + name("x"));
}

void AttentionHalf::weight_gradients() {
  p_.weight_gradient(name("attention output"), name("attended"), out_);
  p_.weight_gradient(name("query"), name("attention in"), dq_);
  p_.weight_gradient(name("key"), name("attention in"), dk_);
  p_.weight_gradient(name("value"), name("attention in"), dv_);
}

}  // namespace unisono::step
