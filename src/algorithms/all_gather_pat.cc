// PAT all_gather: every part goes down a tree, to far ranks first, a few parts per message.
//
//   steps    ceil(log2(n)) if a message may have n/2 parts. If it may have A = 2^a parts: at most
//            a + 2^(ceil(log2(n))-a) - 1, and fewer if n is no power of two
//   sent     n-1 chunks per rank, the lower bound; far ranks get few messages, in the first steps
//   cost     (steps)*alpha + (n-1)/n * S*beta
//   scratch  none: parts arrive at their final places and are forwarded from there
//   order    nothing is summed
//   limits   none; in place
//   source   Jeaugey, arXiv 2506.20252, 2025
#include "algorithms/aggregated_trees.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_pat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};
  for (const TreeStep& step : tree_steps(n, shape.parameters.aggregate)) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      for (const int distance : step.reached) {
        schedule.move(
            {.from = wrap(rank - step.hop, n), .to = rank, .chunk = wrap(rank - distance, n)});
      }
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_pat{
    .name = "pat",
    .collective = Collective::all_gather,
    .summary = "parts go down trees, far ranks first, a few parts per message",
    .source = "Jeaugey, arXiv 2506.20252, 2025",
    .build = build_all_gather_pat,
    .steps = tree_step_count,
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return tree_step_count(shape) * t.alpha + (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge = [](Shape shape, int from,
               int to) { return is_tree_hop(shape, wrap(to - from, shape.ranks)); },
    .allows_v = true,
    .defaults = [](int) { return AlgorithmParameters{.aggregate = 4}; }};

}  // namespace unisono::algorithms
