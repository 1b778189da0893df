// Hierarchical reduce_scatter: from the inner level to the outer, so that little data crosses
// groups.
//
//   steps    each level of L ranks adds log2(L) if L is a power of two, otherwise L-1
//   sent     n-1 chunks per rank, the lower bound; m-1 of them at the top level of m groups
//   cost     (steps)*alpha + (n-1)/n * S*(beta + gamma). If each level has its own alpha and beta:
//            at a level, a rank sends (L-1)*A chunks, where A is the product of L over the higher
//            levels
//   scratch  the sums that a rank forwards: at most n-1 chunks per rank
//   order    nested: sums of the inner level, then sums of these at the next level, and so on
//   limits   n a multiple of the groups; in place
//   source   Traeff and Hunold, IEEE CLUSTER 2020
#include "algorithms/hierarchy.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_scatter_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  ScheduleBuilder schedule{Collective::reduce_scatter,
                           {.ranks = shape.ranks, .chunks = shape.ranks}};
  for (int level = 0; level < hierarchy.levels(); ++level) {
    schedule.phase("reduce_scatter " + std::to_string(level));
    reduce_scatter_parts(schedule, hierarchy, level);
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_scatter_hierarchical{
    .name = "hierarchical",
    .collective = Collective::reduce_scatter,
    .summary = "inside groups first, then between them; least bytes between groups",
    .source = "Traeff and Hunold, IEEE CLUSTER 2020",
    .build = build_reduce_scatter_hierarchical,
    .steps = exchange_steps,
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return exchange_steps(shape) * t.alpha +
                 (shape.ranks - 1) * (t.beta + t.gamma) / shape.ranks;
        },
    .edge = [](Shape shape, int from, int to) { return is_level_edge(Hierarchy(shape), from, to); },
    .allows_v = true,
    .supports = groups_divide,
    .limits = kGroupLimits,
    .defaults = square_groups,
    .compact = compact_reduce_scatter};

}  // namespace unisono::algorithms
