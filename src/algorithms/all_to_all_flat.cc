// Flat all_to_all: every rank sends to all other ranks at once.
//
//   steps    1
//   sent     n-1 chunks per rank = (n-1)/n * S bytes, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta; one alpha if a rank can reach all others at once
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_to_all_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  schedule.step();
  // Listed by distance, so that ranks that work down their lists at the same pace never send to one
  // rank at the same time.
  for (int distance = 1; distance < n; ++distance) {
    for (int rank = 0; rank < n; ++rank) {
      const int to = wrap(rank + distance, n);
      schedule.move({.from = rank, .to = to, .chunk = rank * n + to, .source = Place::input});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_to_all_flat{
    .name = "flat",
    .collective = Collective::all_to_all,
    .summary = "every rank sends to all other ranks at once",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_all_to_all_flat,
    .steps = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta / shape.ranks); },
    .edge = [](Shape, int from, int to) { return from != to; },
    .allows_v = true};

}  // namespace unisono::algorithms
