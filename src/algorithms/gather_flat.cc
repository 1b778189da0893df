// Flat gather: every rank sends its part to the root.
//
//   steps    n-1
//   sent     1 chunk = S/n bytes by every rank but the root
//   cost     (n-1)*alpha + (n-1)/n * S*beta
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_gather_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::gather, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int position = 1; position < n; ++position) {
    schedule.step();
    const int from = to_rank(shape, position);
    schedule.move({.from = from, .to = shape.root, .chunk = from});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm gather_flat{
    .name = "flat",
    .collective = Collective::gather,
    .summary = "every rank sends its part to the root",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_gather_flat,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta / shape.ranks); },
    .edge = [](Shape shape, int from, int to) { return from != to && to == shape.root; },
    .allows_v = true};

}  // namespace unisono::algorithms
