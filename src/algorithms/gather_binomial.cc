// Binomial gather: ranks collect the parts of their subtree and send them to their parent.
//
//   steps    ceil(log2(n))
//   sent     the largest subtree below the root, at most n/2 chunks
//   cost     ceil(log2(n))*alpha + (n-1)/n * S*beta
//   scratch  on a rank that forwards: the parts of its subtree except its own
//   order    nothing is summed
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_gather_binomial(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::gather, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int hop = 1; hop < n; hop *= 2) {
    schedule.step();
    for (int position = hop; position < n; position += 2 * hop) {
      const int from = to_rank(shape, position);
      move_wrapped(schedule,
                   {.from = from,
                    .to = to_rank(shape, position - hop),
                    .chunk = from,
                    .chunks = subtree_size(position, n)},
                   n);
    }
  }
  return std::move(schedule).build();
}

constexpr int largest_subtree(int n) {
  int largest = 0;
  for (int position = 1; position < n; ++position) {
    largest = std::max(largest, subtree_size(position, n));
  }
  return largest;
}

}  // namespace

extern constinit const Algorithm gather_binomial{
    .name = "binomial",
    .collective = Collective::gather,
    .summary = "subtrees of parts double in every step; fewest steps",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_gather_binomial,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return largest_subtree(shape.ranks); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return ceil_log2(shape.ranks) * t.alpha + (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to && binomial_parent(from_root(shape, from)) == from_root(shape, to);
        },
    .allows_v = true};

}  // namespace unisono::algorithms
