// Double binary tree reduce: half of the segments flow up one tree, the other half up another tree.
// A rank that adds sums in one tree is a leaf of the other.
//
//   steps    s + 2*ceil(log2(n)) - 2 for s segments; for some n one step fewer
//   sent     s chunks = S bytes by every rank but the root
//   cost     (steps) * (alpha + S/s * (beta + gamma)), but for n = 3 steps - 1 instead of steps.
//            About S*(beta + gamma) for long vectors
//   scratch  the sums of the tree in which a rank has children: half of the segments
//   order    a rank's own input, then its children's sums as they arrive. All segments of a tree
//            have the same order
//   limits   none; in place
//   source   Sanders, Speck and Traeff, Parallel Computing 35(12), 2009
#include "algorithms/two_trees.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_double_tree(Shape shape) {
  ScheduleBuilder schedule{
      Collective::reduce,
      {.ranks = shape.ranks, .chunks = shape.parameters.segments, .root = shape.root}};
  reduce_two_trees(schedule, shape);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_double_tree{
    .name = "double_tree",
    .collective = Collective::reduce,
    .summary = "segments flow up two trees that use all ports; for long vectors on many ranks",
    .source = "Sanders, Speck and Traeff, Parallel Computing 35(12), 2009",
    .build = build_reduce_double_tree,
    .steps = two_tree_steps,
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? shape.parameters.segments : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return two_tree_messages(shape) *
                 (t.alpha + (t.beta + t.gamma) / shape.parameters.segments);
        },
    .edge = [](Shape shape, int from, int to) { return is_two_tree_edge(shape, to, from); },
    .route =
        [](Shape shape, const Move& move) {
          return is_two_tree_route(shape, move.to, move.from, move.chunk);
        },
    .defaults = [](int n) { return AlgorithmParameters{.segments = two_tree_segments(n)}; }};

}  // namespace unisono::algorithms
