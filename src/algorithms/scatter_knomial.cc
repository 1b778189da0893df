// k-nomial scatter: at every level the root sends the parts of subtrees to k-1 ranks, which forward
// them.
//
//   steps    ceil(log_k(n)) levels; a rank sends up to k-1 times at each level
//   sent     n-1 chunks = (n-1)/n * S bytes by the root, the lower bound
//   cost     (children of the root)*alpha + (n-1)/n * S*beta
//   scratch  on a rank that forwards: the parts of its subtree
//   order    nothing is summed
//   limits   none; in place
//   source   Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_scatter_knomial(Shape shape) {
  const int n = shape.ranks;
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::scatter, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int weight = heaviest(n, radix); weight >= 1; weight /= radix) {
    schedule.step();
    for (int digit = 1; digit <= last_digit(n, radix, weight); ++digit) {
      for_each_knomial_edge(n, radix, weight, digit, [&](int parent, int child) {
        const int to = to_rank(shape, child);
        move_wrapped(schedule,
                     {.from = to_rank(shape, parent),
                      .to = to,
                      .chunk = to,
                      .chunks = knomial_subtree(child, n, radix)},
                     n);
      });
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scatter_knomial{
    .name = "knomial",
    .collective = Collective::scatter,
    .summary = "subtrees of parts go to k-1 ranks at every level, which pass them on",
    .source = "Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023",
    .build = build_scatter_knomial,
    .steps = [](Shape shape) { return digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int n = shape.ranks;
          return single_digits(n, shape.parameters.radix) * t.alpha + (n - 1) * t.beta / n;
        },
    .edge = is_knomial_edge,
    .allows_v = true,
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
