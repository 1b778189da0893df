// Flat broadcast: the root sends to every other rank.
//
//   steps    n-1
//   sent     n-1 chunks = (n-1) * S bytes by the root
//   cost     (n-1) * (alpha + S*beta); one alpha and S*beta if one write reaches all ranks
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_broadcast_flat(Shape shape) {
  ScheduleBuilder schedule{Collective::broadcast,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  for (int position = 1; position < shape.ranks; ++position) {
    schedule.step();
    schedule.move(
        {.from = shape.root, .to = to_rank(shape, position), .chunk = 0, .source = Place::input});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm broadcast_flat{
    .name = "flat",
    .collective = Collective::broadcast,
    .summary = "the root sends to every other rank",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_broadcast_flat,
    .steps = [](Shape shape) { return shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost = [](Shape shape, const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta); },
    .edge = [](Shape shape, int from, int to) { return from == shape.root && to != from; }};

}  // namespace unisono::algorithms
