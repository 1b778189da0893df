// Flat scatter: the root sends every rank its part.
//
//   steps    n-1
//   sent     n-1 chunks = (n-1)/n * S bytes by the root, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_scatter_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::scatter, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int position = 1; position < n; ++position) {
    schedule.step();
    const int to = to_rank(shape, position);
    schedule.move({.from = shape.root, .to = to, .chunk = to});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scatter_flat{
    .name = "flat",
    .collective = Collective::scatter,
    .summary = "the root sends every rank its part",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_scatter_flat,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta / shape.ranks); },
    .edge = [](Shape shape, int from, int to) { return from == shape.root && to != from; },
    .allows_v = true};

}  // namespace unisono::algorithms
