// Hierarchical all_gather: from the outer level to the inner, so that little data crosses groups.
//
//   steps    each level of L ranks adds log2(L) if L is a power of two, otherwise L-1
//   sent     n-1 chunks per rank, the lower bound; m-1 of them at the top level of m groups
//   cost     (steps)*alpha + (n-1)/n * S*beta. If each level has its own alpha and beta: at a
//            level, a rank sends (L-1)*A chunks, where A is the product of L over the higher levels
//   scratch  none
//   order    nothing is summed
//   limits   n a multiple of the groups; in place
//   source   Traeff and Hunold, IEEE CLUSTER 2020
#include "algorithms/hierarchy.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = shape.ranks, .chunks = shape.ranks}};
  for (int level = hierarchy.levels() - 1; level >= 0; --level) {
    schedule.phase("all_gather " + std::to_string(level));
    all_gather_parts(schedule, hierarchy, level);
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_hierarchical{
    .name = "hierarchical",
    .collective = Collective::all_gather,
    .summary = "between groups first, then inside them; least bytes between groups",
    .source = "Traeff and Hunold, IEEE CLUSTER 2020",
    .build = build_all_gather_hierarchical,
    .steps = exchange_steps,
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return exchange_steps(shape) * t.alpha + (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge = [](Shape shape, int from, int to) { return is_level_edge(Hierarchy(shape), from, to); },
    .allows_v = true,
    .supports = groups_divide,
    .limits = kGroupLimits,
    .defaults = square_groups,
    .compact = compact_all_gather};

}  // namespace unisono::algorithms
