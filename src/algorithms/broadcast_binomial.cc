// Binomial broadcast: in every step, the number of ranks that have the data doubles.
//
//   steps    ceil(log2(n))
//   sent     ceil(log2(n)) chunks = ceil(log2(n)) * S bytes by the root
//   cost     ceil(log2(n)) * (alpha + S*beta)
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_broadcast_binomial(Shape shape) {
  ScheduleBuilder schedule{Collective::broadcast,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  // The longest hop comes first, so that every parent has the data before its children need it.
  for (int hop = widest_hop(shape.ranks); hop >= 1; hop /= 2) {
    schedule.step();
    for (int position = 0; position + hop < shape.ranks; position += 2 * hop) {
      schedule.move({.from = to_rank(shape, position), .to = to_rank(shape, position + hop)});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm broadcast_binomial{
    .name = "binomial",
    .collective = Collective::broadcast,
    .summary = "the ranks that have the data double in every step; fewest steps",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_broadcast_binomial,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return ceil_log2(shape.ranks); },
    .cost = [](Shape shape,
               const CostTerms& t) { return ceil_log2(shape.ranks) * (t.alpha + t.beta); },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to && binomial_parent(from_root(shape, to)) == from_root(shape, from);
        }};

}  // namespace unisono::algorithms
