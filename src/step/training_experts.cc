// The experts of a layer in training. The dimensions of their input are sizes for a router that
// spreads rows evenly: each expert receives equally many rows of each sequence.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Names = Forward::Names;
const Names kRouted = {"experts", "sequences", "slots", "width"};
const Names kWeights = {"experts", "sequences", "slots"};

// Moves rows to the experts, or back. If one rank has all experts, it only reorders the rows.
void move(Forward& f, Node::Kind kind, const std::string& name, const std::string& rows,
          const std::string& made, Names dims, double rows_sent) {
  const bool is_dispatch = kind == Node::Kind::dispatch;
  Node node{.kind = kind,
            .name = name,
            .reads = {rows, "scores"},
            .writes = {made},
            .renamed = {is_dispatch ? std::pair{"places", "slots"} : std::pair{"slots", "places"}},
            .axes = "ep",
            .from = shard(is_dispatch ? "sequences" : "experts"),
            .to = shard(is_dispatch ? "experts" : "sequences"),
            .rows_sent = rows_sent};
  if (!f.build().is_wide("ep")) {
    node = {.name = name,
            .reads = {rows},
            .writes = {made},
            .pointwise = {"sequences", "places", "slots", "width"},
            .summed = {"experts", "chosen"},
            .linear = Node::Linear::each,
            .renamed = std::move(node.renamed)};
  }
  f.make(made, std::move(dims));
  f.compute(node);
}

}  // namespace

void experts_part(Forward& f) {
  const double sent = f.parts().shape.experts_per_token;
  f.product("router", "inner in", "router", "router out", {"sequences", "places", "experts"});
  f.pointwise("experts chosen", {"router out"}, "scores", {"sequences", "places", "chosen"},
              f.parts().rows);
  f.keep_result();
  move(f, Node::Kind::dispatch, "dispatch", "inner in", "routed", kRouted, sent);
  move(f, Node::Kind::dispatch, "scores dispatched", "scores", "weights", kWeights, 1);
  gated_part(f, {.kind = "expert ",
                 .in = "routed",
                 .out = "given",
                 .rows = kWeights,
                 .hidden = "expert_hidden"});
  f.pointwise("weighted", {"given", "weights"}, "weighted", kRouted, kRouted, Node::Linear::each);
  const bool is_shared = f.parts().shape.shared_ffn > 0;
  const std::string z = is_shared ? "expert z" : "z";
  move(f, Node::Kind::combine, "combine", "weighted", z, kLayerRows, sent);
  if (is_shared) {
    gated_part(f,
               {.kind = "shared ", .in = "inner in", .out = "shared z", .hidden = "shared_hidden"});
    f.sum("shared added", {z, "shared z"}, "z");
  }
}

}  // namespace unisono::step
