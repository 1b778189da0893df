// Flat all_reduce in two shots: rank r reduces chunk r of all ranks, then sends it to all ranks.
//
//   steps    2n (n > 1): n contributions in rank order, one copy to the output, n-1 sends
//   sent     2(n-1) chunks per rank = 2(n-1)/n * S bytes, the lower bound
//   cost     one port: (3n-4) * (alpha + S/n * beta) + (n-1)/n * S*gamma, because all ranks first
//            need the data of rank 0, and wait for it. 2*alpha + 2(n-1)/n * S*beta if a rank can
//            reach all others at once
//   scratch  one chunk per rank: the partial sum
//   order    every chunk is summed in the order 0, 1, ..., n-1 (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include <vector>

#include "algorithms/rank_order.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = n, .chunks = n}};
  std::vector<Owned> owners;
  for (int rank = 0; rank < n; ++rank) {
    owners.push_back({.rank = rank, .chunk = rank});
  }
  schedule.phase("reduce_scatter");
  reduce_in_rank_order(schedule, n, owners);

  schedule.phase("all_gather");
  for (int distance = 1; distance < n; ++distance) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      schedule.move({.from = rank, .to = wrap(rank + distance, n), .chunk = rank});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_reduce_flat{
    .name = "flat",
    .collective = Collective::all_reduce,
    .summary = "each rank reduces one chunk of all in rank order, then sends it to all",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_all_reduce_flat,
    .steps = [](Shape shape) { return rank_order_steps(shape.ranks) + shape.ranks - 1; },
    .chunks_sent = [](Shape shape) { return 2 * (shape.ranks - 1); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1 ? 0
                                  : (3 * shape.ranks - 4) * (t.alpha + t.beta / shape.ranks) +
                                        (shape.ranks - 1) * t.gamma / shape.ranks;
        },
    .edge = [](Shape, int from, int to) { return from != to; },
    .rank_order = true};

}  // namespace unisono::algorithms
