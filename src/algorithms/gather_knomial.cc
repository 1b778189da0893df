// k-nomial gather: ranks collect the parts of k-1 subtrees at every level and send them to their
// parent.
//
//   steps    ceil(log_k(n)) levels; a rank receives up to k-1 times at each level
//   sent     the largest subtree below the root
//   cost     (children of the root)*alpha + (n-1)/n * S*beta
//   scratch  on a rank that forwards: the parts of its subtree except its own
//   order    nothing is summed
//   limits   none; in place
//   source   Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_gather_knomial(Shape shape) {
  const int n = shape.ranks;
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::gather, {.ranks = n, .chunks = n, .root = shape.root}};
  for (const int weight : weights(n, radix)) {
    schedule.step();
    for (int digit = 1; digit <= last_digit(n, radix, weight); ++digit) {
      for_each_knomial_edge(n, radix, weight, digit, [&](int parent, int child) {
        const int from = to_rank(shape, child);
        move_wrapped(schedule,
                     {.from = from,
                      .to = to_rank(shape, parent),
                      .chunk = from,
                      .chunks = knomial_subtree(child, n, radix)},
                     n);
      });
    }
  }
  return std::move(schedule).build();
}

// Among children at the same level, only the last one can have a smaller subtree.
constexpr int largest_subtree(Shape shape) {
  const int n = shape.ranks;
  const int heavy = heaviest(n, shape.parameters.radix);
  return n == 1 ? 0 : std::max(std::min(heavy, n - heavy), heavy / shape.parameters.radix);
}

}  // namespace

extern constinit const Algorithm gather_knomial{
    .name = "knomial",
    .collective = Collective::gather,
    .summary = "ranks collect the parts of k-1 subtrees at every level and pass them up",
    .source = "Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023",
    .build = build_gather_knomial,
    .steps = [](Shape shape) { return digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = largest_subtree,
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int n = shape.ranks;
          return single_digits(n, shape.parameters.radix) * t.alpha + (n - 1) * t.beta / n;
        },
    .edge = [](Shape shape, int from, int to) { return is_knomial_edge(shape, to, from); },
    .allows_v = true,
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
