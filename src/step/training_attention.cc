// The attention of a layer: the moves of its queries, keys and values, and its backward pass, which
// computes scores again.
//
// With uly, positions are sharded outside attention, and heads inside. With cp, a query needs keys
// and values of other positions, which are sent around a ring or gathered. Tensors kept for the
// backward pass have the layout outside attention, and are moved to the layout inside attention
// once more.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Names = Forward::Names;

const Names kHeadRows = {"sequences", "places", "heads"};

// Returns the flops for each query and key of a head: `by_keys` products with keys and `by_values`
// products with values. The causal mask leaves half of them, a window less.
double flops(const TrainingParts& p, int layer, double by_keys, double by_values) {
  const auto size = [&](const char* dim) {
    return static_cast<double>(p.build.step().find_dim(dim)->size);
  };
  const auto length = static_cast<double>(p.task.length);
  const double seen = seen_in_sequence(p.shape, p.shape.kind(layer), length) / (length / 2);
  return seen * (by_keys * size("dim") + by_values * size(p.value_dim()));
}

Names attended(const TrainingParts& p) {
  return {"sequences", "places", "heads", p.value_dim()};
}

// Moves a tensor from sharded places (outside of attention) to sharded heads (inside).
std::string to_heads(Forward& f, const std::string& tensor, const std::string& made,
                     const char* heads = "heads") {
  return f.moved("to heads", tensor, made, "uly", shard("places"), shard(heads));
}

Names to_heads(Forward& f, const std::string& suffix) {
  return {to_heads(f, "q", "q" + suffix), to_heads(f, "k", "k" + suffix, "kv_heads"),
          to_heads(f, "v", "v" + suffix, "kv_heads")};
}

// Keys and values have a separate dimension for their places, because a query sees those of other
// places.
void see(Forward& f, const std::string& tensor, const std::string& made) {
  const Names dims = f.dims(tensor);
  f.make(made, {dims[0], "seen", dims[2], dims[3]});
  f.compute({.name = "seen",
             .reads = {tensor},
             .writes = {made},
             .pointwise = dims,
             .linear = Node::Linear::together,
             .renamed = {{"places", "seen"}}});
}

void see(Forward& f, const Names& moved, const Names& made, const char* ring) {
  see(f, moved[1], made[0]);
  see(f, moved[2], made[1]);
  const auto around = [&](const Names& tensors, const char* by) {
    f.redistribute("keys and values", tensors, "cp", shard("seen"), replicate(), by);
  };
  if (f.parts().task.gathers_keys) {
    around({made[0]}, "");
    around({made[1]}, "");
  } else {
    around(made, ring);
  }
}

// Adds the nodes from the gradient of "attended" to the gradients of attention's inputs; moves
// these inputs a second time.
void attend_backward(Backward& backward, int layer, const std::string& q,
                     const std::string& gradient) {
  const Forward& f = backward.forward();
  TrainingParts& p = f.parts();
  p.activation(f.full("delta"), kHeadRows);
  p.build.pointwise("delta", {f.full("attended"), gradient}, f.full("delta"), kHeadRows);
  Forward again(p, f.prefix(), {});
  const Names moved = to_heads(again, " again");
  const Names keys = {"keys again", "values again"};
  Names reads = {f.full(moved[0]), f.full(keys[0]), f.full(keys[1])};
  for (const auto& [tensor, made] : {std::pair{gradient, "d " + f.full("attended of heads")},
                                     std::pair{f.full("log_sum"), f.full("log_sum again")},
                                     std::pair{f.full("delta"), f.full("delta of heads")}}) {
    reads.push_back(p.moved("to heads", tensor, made, "uly", shard("places"), shard("heads")));
  }
  see(again, moved, keys, "ring_with");
  p.build.compute_each({.name = "d query",
                        .reads = reads,
                        .writes = {backward.make("attention", f.full(q))},
                        .pointwise = kHeadRows,
                        .summed = {"seen"},
                        .flops = flops(p, layer, 2, 1)});
  p.build.compute_each({.name = "d keys, d values",
                        .reads = reads,
                        .writes = {backward.make("attention", f.full("keys")),
                                   backward.make("attention", f.full("values"))},
                        .pointwise = {"sequences", "seen", "heads"},
                        .summed = {"places"},
                        .flops = flops(p, layer, 1, 1)});
}

}  // namespace

void attend(Forward& f, int layer) {
  TrainingParts& p = f.parts();
  const Names moved = to_heads(f, " of heads");
  see(f, moved, {"keys", "values"}, "ring");
  const std::string suffix = p.build.is_wide("uly") ? " of heads" : "";
  Node node{.name = "attention",
            .reads = {f.full(moved[0]), f.full("keys"), f.full("values")},
            .writes = {f.full("attended" + suffix), f.full("log_sum" + suffix)},
            .pointwise = kHeadRows,
            .summed = {"seen"},
            .flops = flops(p, layer, 1, 1)};
  f.make("attended" + suffix, attended(p));
  f.make("log_sum" + suffix, kHeadRows);
  p.build.compute_each(std::move(node));
  for (const char* tensor : {"attended", "log_sum"}) {
    const std::string full = f.full(tensor);
    p.moved("to rows", full + suffix, full, "uly", shard("heads"), shard("places"));
  }
  f.own(
      {.node = {.name = "attention", .reads = {moved[0], "keys", "values"}, .writes = {"attended"}},
       .backward = [layer, q = moved[0]](Backward& backward, const std::string& gradient) {
         attend_backward(backward, layer, q, gradient);
       }});
}

}  // namespace unisono::step
