// Flat barrier: every rank notifies every other rank.
//
//   steps    n-1: in step s each rank notifies the rank s places ahead
//   sent     n-1 empty messages per rank
//   cost     (n-1)*alpha; one alpha if a rank can reach all others at once
//   scratch  none
//   order    none: nothing is summed
//   limits   none
//   source   Mellor-Crummey and Scott, ACM TOCS 9(1), 1991
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_barrier_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::barrier, {.ranks = n, .chunks = 1}};
  for (int distance = 1; distance < n; ++distance) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank,
                     .to = wrap(rank + distance, n),
                     .combine = Combine::reduce,
                     .source = Place::input});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm barrier_flat{
    .name = "flat",
    .collective = Collective::barrier,
    .summary = "every rank notifies every other rank; one hop",
    .source = "Mellor-Crummey and Scott, ACM TOCS 9(1), 1991",
    .build = build_barrier_flat,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape, const CostTerms& t) { return (shape.ranks - 1) * t.alpha; },
    .edge = [](Shape, int from, int to) { return from != to; }};

}  // namespace unisono::algorithms
