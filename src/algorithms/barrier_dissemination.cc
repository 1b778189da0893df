// Dissemination barrier: in step k, rank r notifies rank r + 2^k (mod n) that r has arrived, and
// that all ranks that have notified r have arrived.
//
//   steps    ceil(log2(n))
//   sent     ceil(log2(n)) empty messages per rank
//   cost     ceil(log2(n)) * alpha
//   scratch  none
//   order    none: nothing is summed
//   limits   none
//   source   Hensgen, Finkel and Manber, IJPP 17(1), 1988
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_barrier_dissemination(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::barrier, {.ranks = n, .chunks = 1}};
  for (int distance = 1; distance < n; distance *= 2) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move(
          {.from = rank, .to = wrap(rank + distance, n), .chunk = 0, .combine = Combine::reduce});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm barrier_dissemination{
    .name = "dissemination",
    .collective = Collective::barrier,
    .summary = "every rank notifies the ranks 1, 2, 4, ... places ahead",
    .source = "Hensgen, Finkel and Manber, IJPP 17(1), 1988",
    .build = build_barrier_dissemination,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return ceil_log2(shape.ranks); },
    .cost = [](Shape shape, const CostTerms& t) { return ceil_log2(shape.ranks) * t.alpha; },
    .edge = [](Shape shape, int from,
               int to) { return is_power_of_two(wrap(to - from, shape.ranks)); }};

}  // namespace unisono::algorithms
