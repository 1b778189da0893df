// k-nomial reduce: at every level a rank adds the sums of its k-1 children, then sends the sum to
// its parent.
//
//   steps    one for each child of the root: at most (k-1) * ceil(log_k(n))
//   sent     one chunk = S bytes by every rank but the root
//   cost     (children of the root) * (alpha + S*beta + S*gamma)
//   scratch  the sum, on a rank that has children, except the root
//   order    a rank's own input, then its children's sums, from the nearest to the farthest child
//   limits   none; in place
//   source   Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_knomial(Shape shape) {
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::reduce,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  for (const int weight : weights(shape.ranks, radix)) {
    // Two sums cannot be added to one chunk in the same step.
    for (int digit = 1; digit <= last_digit(shape.ranks, radix, weight); ++digit) {
      schedule.step();
      for_each_knomial_edge(shape.ranks, radix, weight, digit, [&](int parent, int child) {
        schedule.move({.from = to_rank(shape, child),
                       .to = to_rank(shape, parent),
                       .combine = Combine::reduce});
      });
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_knomial{
    .name = "knomial",
    .collective = Collective::reduce,
    .summary = "ranks add the sums of k-1 other ranks at every level and pass them up",
    .source = "Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023",
    .build = build_reduce_knomial,
    .steps = [](Shape shape) { return single_digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return single_digits(shape.ranks, shape.parameters.radix) * (t.alpha + t.beta + t.gamma);
        },
    .edge = [](Shape shape, int from, int to) { return is_knomial_edge(shape, to, from); },
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
