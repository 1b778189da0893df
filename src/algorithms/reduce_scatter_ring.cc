// Ring reduce_scatter: every chunk travels once around the ring and ends at its owner.
//
//   steps    n-1
//   sent     n-1 chunks per rank = (n-1)/n * S bytes, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta + (n-1)/n * S*gamma
//   scratch  the partial sums that a rank forwards: n-2 chunks per rank
//   order    chunk c is summed in the order c+1, c+2, ..., n-1, 0, ..., c
//   limits   none; in place
//   source   Patarasuk and Yuan, JPDC 69(2), 2009
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_scatter_ring(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::reduce_scatter, {.ranks = n, .chunks = n}};

  // Rank r starts with chunk r-1 and so receives its own chunk last.
  for (int step = 0; step < n - 1; ++step) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank,
                     .to = wrap(rank + 1, n),
                     .chunk = wrap(rank - 1 - step, n),
                     .combine = Combine::reduce});
    }
  }
  return std::move(schedule).build();
}

CompactSchedule compact_reduce_scatter_ring(Shape shape) {
  return {.collective = Collective::reduce_scatter,
          .ranks = shape.ranks,
          .chunks = shape.ranks,
          .phases = {ring_lap("reduce_scatter", shape.ranks, true)}};
}

}  // namespace

extern constinit const Algorithm reduce_scatter_ring{
    .name = "ring",
    .collective = Collective::reduce_scatter,
    .summary = "each chunk is summed once around a ring; least bytes",
    .source = "Patarasuk and Yuan, JPDC 69(2), 2009",
    .build = build_reduce_scatter_ring,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return (shape.ranks - 1) * (t.alpha + (t.beta + t.gamma) / shape.ranks);
        },
    .edge = [](Shape shape, int from, int to) { return to == wrap(from + 1, shape.ranks); },
    .allows_v = true,
    .compact = compact_reduce_scatter_ring};

}  // namespace unisono::algorithms
