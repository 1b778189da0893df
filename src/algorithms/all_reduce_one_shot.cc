// One-shot all_reduce: every rank sends its whole input to all ranks, and every rank reduces all
// inputs.
//
//   steps    n+1 (n > 1): n contributions in rank order, one copy to the output
//   sent     n-1 chunks per rank = (n-1) * S bytes
//   cost     one port: (2n-3) * (alpha + S*beta) + (n-1) * S*gamma, because all ranks first need
//            the data of rank 0, and wait for it. If a rank can reach all others at once, one
//            alpha: the lowest latency for small vectors
//   scratch  one chunk per rank: the partial sum
//   order    0, 1, ..., n-1 on every rank (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include <vector>

#include "algorithms/rank_order.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_one_shot(Shape shape) {
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = shape.ranks, .chunks = 1}};
  std::vector<Owned> owners;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    owners.push_back({.rank = rank, .chunk = 0});
  }
  reduce_in_rank_order(schedule, shape.ranks, owners);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_reduce_one_shot{
    .name = "one_shot",
    .collective = Collective::all_reduce,
    .summary = "every rank sends its input to all and reduces all in rank order",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_all_reduce_one_shot,
    .steps = [](Shape shape) { return rank_order_steps(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1
                     ? 0
                     : (2 * shape.ranks - 3) * (t.alpha + t.beta) + (shape.ranks - 1) * t.gamma;
        },
    .edge = [](Shape, int from, int to) { return from != to; },
    .rank_order = true};

}  // namespace unisono::algorithms
