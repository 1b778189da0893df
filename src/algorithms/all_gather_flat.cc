// Flat all_gather: every rank sends its part to every other rank.
//
//   steps    n-1: in step s each rank sends to the rank s places ahead, so it gets one message
//   sent     n-1 chunks per rank, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta; one alpha if a rank can reach all others at once
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};
  for (int distance = 1; distance < n; ++distance) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move(
          {.from = rank, .to = wrap(rank + distance, n), .chunk = rank, .source = Place::input});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_flat{
    .name = "flat",
    .collective = Collective::all_gather,
    .summary = "every rank sends its part to every other rank",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_all_gather_flat,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta / shape.ranks); },
    .edge = [](Shape, int from, int to) { return from != to; },
    .allows_v = true};

}  // namespace unisono::algorithms
