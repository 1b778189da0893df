// Double binary tree broadcast: half of the segments flow down one tree, the other half down
// another tree. A rank that forwards data in one tree is a leaf of the other.
//
//   steps    s + 2*ceil(log2(n)) - 2 for s segments; for some n one step fewer
//   sent     at most s+1 chunks, about S bytes, by a rank with two children
//   cost     (steps) * (alpha + S/s * beta); for n = 3, (steps - 1) * (alpha + S/s * beta). About
//            S*beta for long vectors
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Sanders, Speck and Traeff, Parallel Computing 35(12), 2009
#include "algorithms/two_trees.h"

namespace unisono::algorithms {
namespace {

Schedule build_broadcast_double_tree(Shape shape) {
  ScheduleBuilder schedule{
      Collective::broadcast,
      {.ranks = shape.ranks, .chunks = shape.parameters.segments, .root = shape.root}};
  broadcast_two_trees(schedule, shape);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm broadcast_double_tree{
    .name = "double_tree",
    .collective = Collective::broadcast,
    .summary = "segments flow down two trees that use all ports; for long vectors on many ranks",
    .source = "Sanders, Speck and Traeff, Parallel Computing 35(12), 2009",
    .build = build_broadcast_double_tree,
    .steps = two_tree_steps,
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? two_tree_fan_out(shape) : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return two_tree_messages(shape) * (t.alpha + t.beta / shape.parameters.segments);
        },
    .edge = is_two_tree_edge,
    .route =
        [](Shape shape, const Move& move) {
          return is_two_tree_route(shape, move.from, move.to, move.chunk);
        },
    .defaults = [](int n) { return AlgorithmParameters{.segments = two_tree_segments(n)}; }};

}  // namespace unisono::algorithms
