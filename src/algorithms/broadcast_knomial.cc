// k-nomial broadcast: each rank that has the data sends it to k-1 others at every level.
//
//   steps    ceil(log_k(n)) levels; a rank sends up to k-1 times at each level
//   sent     one chunk for each child of the root: at most (k-1) * ceil(log_k(n)) * S bytes
//   cost     (children of the root) * (alpha + S*beta); fewer levels are faster if one write
//   cost     (children of the root) * (alpha + S*beta). Fewer levels are faster if one write
//            reaches several ranks, or if a rank has several ports
//   order    nothing is summed
//   limits   none; in place
//   source   Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_broadcast_knomial(Shape shape) {
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::broadcast,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  for (int weight = heaviest(shape.ranks, radix); weight >= 1; weight /= radix) {
    schedule.step();
    for (int digit = 1; digit <= last_digit(shape.ranks, radix, weight); ++digit) {
      for_each_knomial_edge(shape.ranks, radix, weight, digit, [&](int parent, int child) {
        schedule.move({.from = to_rank(shape, parent), .to = to_rank(shape, child)});
      });
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm broadcast_knomial{
    .name = "knomial",
    .collective = Collective::broadcast,
    .summary = "ranks that have the data send it to k-1 others at every level",
    .source = "Wilkins, Wang, Liu, Pham, Guo, Thakur, Dinda and Hardavellas, IEEE CLUSTER 2023",
    .build = build_broadcast_knomial,
    .steps = [](Shape shape) { return digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = [](Shape shape) { return single_digits(shape.ranks, shape.parameters.radix); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return single_digits(shape.ranks, shape.parameters.radix) * (t.alpha + t.beta);
        },
    .edge = is_knomial_edge,
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
