// PAT reduce_scatter: the sums of every part go up a tree, a few sums per message; hops between far
// ranks come last.
//
//   steps    ceil(log2(n)) if a message may have n/2 parts. If it may have A = 2^a parts: at most
//            a + 2^(ceil(log2(n))-a) - 1, and fewer if n is no power of two
//   sent     n-1 chunks per rank, the lower bound
//   cost     (steps)*alpha + (n-1)/n * S*beta + (n-1)/n * S*gamma
//   scratch  the incomplete sums: at most A * ceil(log2(n)) chunks at a time
//   order    a rank's own input, then the sums of the ranks below it in the tree, the nearest first
//   limits   none; in place
//   source   Jeaugey, arXiv 2506.20252, 2025
#include "algorithms/aggregated_trees.h"

namespace unisono::algorithms {
namespace {

// Builds the all_gather in reverse: the parts that it sends on are added up here.
Schedule build_reduce_scatter_pat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::reduce_scatter, {.ranks = n, .chunks = n}};
  std::vector<TreeStep> steps = tree_steps(n, shape.parameters.aggregate);
  std::reverse(steps.begin(), steps.end());
  for (const TreeStep& step : steps) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      for (const int distance : step.reached) {
        schedule.move({.from = rank,
                       .to = wrap(rank - step.hop, n),
                       .chunk = wrap(rank - distance, n),
                       .combine = Combine::reduce});
      }
    }
  }
  return std::move(schedule).build();
}

// The sum of a distance stays in scratch from the step in which the rank first received it to the
// step in which it sends it.
int scratch_chunks(Shape shape) {
  std::vector<TreeStep> steps = tree_steps(shape.ranks, shape.parameters.aggregate);
  std::reverse(steps.begin(), steps.end());
  std::vector<bool> waits(static_cast<std::size_t>(shape.ranks), false);
  int now = 0;
  int most = 0;
  for (const TreeStep& step : steps) {
    for (const int distance : step.reached) {
      now -= waits[static_cast<std::size_t>(distance)] ? 1 : 0;
    }
    for (const int distance : step.reached) {
      const auto target = static_cast<std::size_t>(distance - step.hop);
      now += target != 0 && !waits[target] ? 1 : 0;
      waits[target] = target != 0;
    }
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

extern constinit const Algorithm reduce_scatter_pat{
    .name = "pat",
    .collective = Collective::reduce_scatter,
    .summary = "sums go up trees, far ranks last, a few per message; little scratch",
    .source = "Jeaugey, arXiv 2506.20252, 2025",
    .build = build_reduce_scatter_pat,
    .steps = tree_step_count,
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return tree_step_count(shape) * t.alpha +
                 (shape.ranks - 1) * (t.beta + t.gamma) / shape.ranks;
        },
    .edge = [](Shape shape, int from,
               int to) { return is_tree_hop(shape, wrap(from - to, shape.ranks)); },
    .allows_v = true,
    .scratch_chunks = scratch_chunks,
    .defaults = [](int) { return AlgorithmParameters{.aggregate = 4}; }};

}  // namespace unisono::algorithms
