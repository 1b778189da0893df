// Binomial scatter: the root sends the parts of whole subtrees to the ranks that forward them.
//
//   steps    ceil(log2(n))
//   sent     n-1 chunks = (n-1)/n * S bytes by the root, the lower bound
//   cost     ceil(log2(n))*alpha + (n-1)/n * S*beta
//   scratch  on a rank that forwards: the parts of its subtree, at most n/2 chunks
//   order    nothing is summed
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_scatter_binomial(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::scatter, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int hop = widest_hop(n); hop >= 1; hop /= 2) {
    schedule.step();
    for (int position = 0; position + hop < n; position += 2 * hop) {
      const int to = to_rank(shape, position + hop);
      move_wrapped(schedule,
                   {.from = to_rank(shape, position),
                    .to = to,
                    .chunk = to,
                    .chunks = subtree_size(position + hop, n)},
                   n);
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scatter_binomial{
    .name = "binomial",
    .collective = Collective::scatter,
    .summary = "subtrees of parts are halved in every step; fewest steps",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_scatter_binomial,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return ceil_log2(shape.ranks) * t.alpha + (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to && binomial_parent(from_root(shape, to)) == from_root(shape, from);
        },
    .allows_v = true};

}  // namespace unisono::algorithms
