// Flat reduce: every rank sends its input to the root, which sums them in rank order.
//
//   steps    n+1 (n > 1): n contributions in rank order, one copy to the output
//   sent     1 chunk = S bytes by every rank but the root
//   cost     (n-1) * (alpha + S*beta + S*gamma)
//   scratch  one chunk on the root: the partial sum
//   order    0, 1, ..., n-1 (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include <array>

#include "algorithms/rank_order.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_flat(Shape shape) {
  ScheduleBuilder schedule{Collective::reduce,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  const std::array owners{Owned{.rank = shape.root, .chunk = 0}};
  reduce_in_rank_order(schedule, shape.ranks, owners);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_flat{
    .name = "flat",
    .collective = Collective::reduce,
    .summary = "every rank sends to the root, which sums in rank order",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_reduce_flat,
    .steps = [](Shape shape) { return rank_order_steps(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .cost = [](Shape shape,
               const CostTerms& t) { return (shape.ranks - 1) * (t.alpha + t.beta + t.gamma); },
    .edge = [](Shape shape, int from, int to) { return from != to && to == shape.root; },
    .rank_order = true};

}  // namespace unisono::algorithms
