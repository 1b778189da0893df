// Attention of a layer, and how its queries, keys and values move.
#include <algorithm>

#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

const Dims kHeadRows = {"sequences", "places", "heads"};
// The dimensions of a tensor, with another name of one.
Dims renamed(Dims dims, const std::string& from, const std::string& to) {
  std::replace(dims.begin(), dims.end(), from, to);
  return dims;
}

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
  Dims dims = build_.step().find_tensor(tensor)->dims;
  p_.activation(made, renamed(dims, from, to));
  build_.compute({.name = node,
                  .reads = {tensor},
                  .writes = {made},
                  .pointwise = std::move(dims),
                  .linear = Node::Linear::together,
                  .renamed = {{from, to}}});
  return made;
}

std::string AttentionMoves::as_seen(const std::string& tensor, const std::string& made) {
  return with_places("seen", tensor, made, "places", "seen");
}

std::string AttentionMoves::as_made(const std::string& tensor, const std::string& made) {
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
  heads_->forward();
  attend();
  p_.product("attention output", name("attended"), name("attention output"), name("y"), kLayerRows);
  p_.leave(name("y"));
  p_.activation(name("middle"), kLayerRows);
  p_.sum("attention added", {name("x"), name("y")}, name("middle"));
}

Dims AttentionHalf::attended() const {
  return {"sequences", "places", "heads", p_.value_dim()};
}

// Flops for each query and key of a head: so many products with keys, and so many with values, of
// all of which the causal mask leaves half, and a window less.
double AttentionHalf::flops(double by_keys, double by_values) const {
  const auto size = [&](const char* dim) {
    return static_cast<double>(build_.step().find_dim(dim)->size);
  };
  const auto length = static_cast<double>(p_.task.length);
  const double seen = seen_in_sequence(p_.shape, p_.shape.kind(layer_), length) / (length / 2);
  return seen * (by_keys * size("dim") + by_values * size(p_.value_dim()));
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
  p_.activation(out, attended());
  p_.activation(log_sum, kHeadRows);
  build_.compute_each({.name = "attention",
                       .reads = {q, keys, values},
                       .writes = {out, log_sum},
                       .pointwise = kHeadRows,
                       .summed = {"seen"},
                       .flops = flops(1, 1)});
  moves_.to_rows(out, name("attended"), "heads");
  moves_.to_rows(log_sum, name("log_sum"), "heads");
}

void AttentionHalf::backward() {
  out_ = p_.leave_backward("d " + name("middle"));
  p_.product("d attended", out_, name("attention output"), name("d attended"), attended());
  p_.activation(name("delta"), kHeadRows);
  p_.by_rows("delta", {name("attended"), name("d attended")}, name("delta"), kHeadRows);
  const Dims reads = again();
  const bool is_moved = build_.is_wide("uly");
  const std::string dq = name(is_moved ? "d q of heads" : "d q");
  p_.activation(dq, build_.step().find_tensor(name("q"))->dims);
  build_.compute_each({.name = "d query",
                       .reads = reads,
                       .writes = {dq},
                       .pointwise = kHeadRows,
                       .summed = {"seen"},
                       .flops = flops(2, 1)});
  const Dims sums = {name("d keys"), name("d values")};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    p_.activation(sums[i], build_.step().find_tensor(reads[i + 1])->dims);
  }
  build_.compute_each({.name = "d keys, d values",
                       .reads = reads,
                       .writes = sums,
                       .pointwise = {"sequences", "seen", "heads"},
                       .summed = {"places"},
                       .flops = flops(1, 1)});
  moves_.home(sums);
  const std::string dq_of_rows = moves_.to_rows(dq, name("d q"), "heads");
  const std::string dk =
      moves_.to_rows(moves_.as_made(sums[0], name("d k of heads")), name("d k"), "kv_heads");
  const std::string dv =
      moves_.to_rows(moves_.as_made(sums[1], name("d v of heads")), name("d v"), "kv_heads");
  const std::string din = heads_->backward(dq_of_rows, dk, dv);
  norm_backward("attention norm", name("x"), din, "d " + name("middle"), "d " + name("x"));
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

void AttentionHalf::weight_gradients() {
  p_.weight_gradient(name("attention output"), name("attended"), out_);
  heads_->weight_gradients();
}

}  // namespace unisono::step
