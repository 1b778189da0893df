// Ring all_gather: every rank's part travels once around the ring.
//
//   steps    n-1
//   sent     n-1 chunks per rank, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_ring(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};

  // Each rank passes on what it received in the step before.
  for (int step = 0; step < n - 1; ++step) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank, .to = wrap(rank + 1, n), .chunk = wrap(rank - step, n)});
    }
  }
  return std::move(schedule).build();
}

CompactSchedule compact_all_gather_ring(Shape shape) {
  return {.collective = Collective::all_gather,
          .ranks = shape.ranks,
          .chunks = shape.ranks,
          .phases = {ring_lap("all_gather", shape.ranks, false)}};
}

}  // namespace

extern constinit const Algorithm all_gather_ring{
    .name = "ring",
    .collective = Collective::all_gather,
    .summary = "each part travels once around a ring; neighbours only",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_all_gather_ring,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta / shape.ranks); },
    .edge = [](Shape shape, int from, int to) { return to == wrap(from + 1, shape.ranks); },
    .allows_v = true,
    .compact = compact_all_gather_ring};

}  // namespace unisono::algorithms
