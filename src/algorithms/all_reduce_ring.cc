// Ring all_reduce: one reduce_scatter lap, then one all_gather lap.
//
//   steps    2(n-1)
//   sent     2(n-1) chunks per rank = 2(n-1)/n * S bytes, the lower bound
//   cost     2(n-1)*alpha + 2(n-1)/n * S*beta + (n-1)/n * S*gamma
//   scratch  none
//   order    chunk c is summed in the order c+1, c+2, ..., n-1, 0, ..., c
//   limits   none; in place
//   source   Patarasuk and Yuan, JPDC 69(2), 2009
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_ring(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = n, .chunks = n}};

  // Rank r starts with chunk r-1, so that it ends owning chunk r: the place where
  // reduce_scatter must leave it. Starting with chunk r would end one off.
  schedule.phase("reduce_scatter");
  for (int step = 0; step < n - 1; ++step) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank,
                     .to = wrap(rank + 1, n),
                     .chunk = wrap(rank - 1 - step, n),
                     .combine = Combine::reduce});
    }
  }
  // Rank r now holds the whole sum of chunk r and forwards it.
  schedule.phase("all_gather");
  for (int step = 0; step < n - 1; ++step) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank, .to = wrap(rank + 1, n), .chunk = wrap(rank - step, n)});
    }
  }
  return std::move(schedule).build();
}

CompactSchedule compact_all_reduce_ring(Shape shape) {
  return {.collective = Collective::all_reduce,
          .ranks = shape.ranks,
          .chunks = shape.ranks,
          .phases = {ring_lap("reduce_scatter", shape.ranks, true),
                     ring_lap("all_gather", shape.ranks, false)}};
}

}  // namespace

extern constinit const Algorithm all_reduce_ring{
    .name = "ring",
    .collective = Collective::all_reduce,
    .summary = "reduce_scatter lap and all_gather lap around a ring; least bytes",
    .source = "Patarasuk and Yuan, JPDC 69(2), 2009",
    .build = build_all_reduce_ring,
    .steps = [](Shape shape) { return 2 * (shape.ranks - 1); },
    .chunks_sent = [](Shape shape) { return 2 * (shape.ranks - 1); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return (shape.ranks - 1) * (2 * t.alpha + (2 * t.beta + t.gamma) / shape.ranks);
        },
    .edge = [](Shape shape, int from, int to) { return to == wrap(from + 1, shape.ranks); },
    .compact = compact_all_reduce_ring};

}  // namespace unisono::algorithms
