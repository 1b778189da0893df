// Hierarchical all_reduce: reduce_scatter from the inner level to the outer, then all_gather back.
//
//   steps    each level of L ranks adds 2 log2(L) if L is a power of two, otherwise 2(L-1)
//   sent     2(n-1) chunks = 2(n-1)/n * S bytes, the lower bound; 2(m-1)/n * S of them at the top
//            level of m groups
//   cost     (steps)*alpha + 2(n-1)/n * S*beta + (n-1)/n * S*gamma. If each level has its own alpha
//            and beta: at a level, a rank sends 2(L-1)/L * S/B bytes, where B is the product of L
//            over the lower levels
//   scratch  none
//   order    nested: sums of the inner level, then sums of these at the next level, and so on
//   limits   n a multiple of the groups; in place
//   source   Cho, Finkler, Serrano, Kung and Hunter, SysML 2019
#include "algorithms/hierarchy.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = shape.ranks, .chunks = shape.ranks}};
  for (int level = 0; level < hierarchy.levels(); ++level) {
    schedule.phase("reduce_scatter " + std::to_string(level));
    reduce_scatter_range(schedule, hierarchy, level, shape.ranks);
  }
  for (int level = hierarchy.levels() - 1; level >= 0; --level) {
    schedule.phase("all_gather " + std::to_string(level));
    all_gather_range(schedule, hierarchy, level, shape.ranks);
  }
  return std::move(schedule).build();
}

CompactSchedule compact_all_reduce_hierarchical(Shape shape) {
  CompactSchedule schedule = compact_reduce_scatter(shape);
  schedule.collective = Collective::all_reduce;
  for (CompactPhase& phase : compact_all_gather(shape).phases) {
    schedule.phases.push_back(std::move(phase));
  }
  return schedule;
}

}  // namespace

extern constinit const Algorithm all_reduce_hierarchical{
    .name = "hierarchical",
    .collective = Collective::all_reduce,
    .summary =
        "reduce_scatter level by level outwards, all_gather back; least bytes between groups",
    .source = "Cho, Finkler, Serrano, Kung and Hunter, SysML 2019",
    .build = build_all_reduce_hierarchical,
    .steps = [](Shape shape) { return 2 * exchange_steps(shape); },
    .chunks_sent = [](Shape shape) { return 2 * (shape.ranks - 1); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return 2 * exchange_steps(shape) * t.alpha +
                 (shape.ranks - 1) * (2 * t.beta + t.gamma) / shape.ranks;
        },
    .edge = [](Shape shape, int from, int to) { return is_level_edge(Hierarchy(shape), from, to); },
    .supports = groups_divide,
    .limits = kGroupLimits,
    .defaults = square_groups,
    .compact = compact_all_reduce_hierarchical};

}  // namespace unisono::algorithms
