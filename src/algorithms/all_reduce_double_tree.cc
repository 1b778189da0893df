// Double binary tree all_reduce: segments flow up two trees to rank 0, and down again.
//
//   steps    2 * (s + 2*ceil(log2(n)) - 2) for s segments; for some n two steps fewer
//   sent     at most 2s+1 chunks, about 2*S bytes, by a rank with two children
//   cost     (steps / 2) * (2*alpha + S/s * (2*beta + gamma)); for n = 3 (steps / 2 - 1) * (...).
//            About S*(2*beta + gamma) for long vectors. The number of steps grows with log2(n); in
//            a ring it grows with n
//   scratch  none
//   order    a rank's own input, then its children's sums as they arrive. All segments of a tree
//            have the same order
//   limits   none; in place
//   source   Sanders, Speck and Traeff, Parallel Computing 35(12), 2009
#include "algorithms/two_trees.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_double_tree(Shape shape) {
  ScheduleBuilder schedule{Collective::all_reduce,
                           {.ranks = shape.ranks, .chunks = shape.parameters.segments}};
  schedule.phase("reduce");
  reduce_two_trees(schedule, shape);
  schedule.phase("broadcast");
  broadcast_two_trees(schedule, shape);
  return std::move(schedule).build();
}

// With three ranks, each rank has one child in one of the trees; with two, rank 1 has none.
int chunks_sent_all_reduce_double_tree(Shape shape) {
  const int segments = shape.parameters.segments;
  switch (shape.ranks) {
    case 1:
      return 0;
    case 2:
      return segments;
    case 3:
      return segments + (segments + 1) / 2;
    default:
      return segments + two_tree_fan_out(shape);
  }
}

}  // namespace

extern constinit const Algorithm all_reduce_double_tree{
    .name = "double_tree",
    .collective = Collective::all_reduce,
    .summary = "segments flow up and down two trees that use all ports; for many ranks",
    .source = "Sanders, Speck and Traeff, Parallel Computing 35(12), 2009",
    .build = build_all_reduce_double_tree,
    .steps = [](Shape shape) { return 2 * two_tree_steps(shape); },
    .chunks_sent = chunks_sent_all_reduce_double_tree,
    .cost =
        [](Shape shape, const CostTerms& t) {
          return two_tree_messages(shape) *
                 (2 * t.alpha + (2 * t.beta + t.gamma) / shape.parameters.segments);
        },
    .edge =
        [](Shape shape, int from, int to) {
          return is_two_tree_edge(shape, from, to) || is_two_tree_edge(shape, to, from);
        },
    .route =
        [](Shape shape, const Move& move) {
          return move.combine == Combine::reduce
                     ? is_two_tree_route(shape, move.to, move.from, move.chunk)
                     : is_two_tree_route(shape, move.from, move.to, move.chunk);
        },
    .defaults = [](int n) { return AlgorithmParameters{.segments = two_tree_segments(n)}; }};

}  // namespace unisono::algorithms
