// Flat reduce_scatter: every rank sends chunk d to rank d, which sums the chunks in rank order.
//
//   steps    n+1 (n > 1): n contributions in rank order, one copy to the output
//   sent     n-1 chunks per rank = (n-1)/n * S bytes, the lower bound
//   cost     one port: (2n-3) * (alpha + S/n * beta) + (n-1)/n * S*gamma, because all ranks first
//            need the data of rank 0, and wait for it. alpha + (n-1)/n * S*beta if a rank can
//            reach all others at once
//   scratch  one chunk per rank: the partial sum
//   order    every chunk is summed in the order 0, 1, ..., n-1 (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include <vector>

#include "algorithms/rank_order.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_scatter_flat(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::reduce_scatter, {.ranks = n, .chunks = n}};
  std::vector<Owned> owners;
  for (int rank = 0; rank < n; ++rank) {
    owners.push_back({.rank = rank, .chunk = rank});
  }
  reduce_in_rank_order(schedule, n, owners);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_scatter_flat{
    .name = "flat",
    .collective = Collective::reduce_scatter,
    .summary = "every rank sends chunk d to rank d, which sums in rank order",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_reduce_scatter_flat,
    .steps = [](Shape shape) { return rank_order_steps(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1 ? 0
                                  : (2 * shape.ranks - 3) * (t.alpha + t.beta / shape.ranks) +
                                        (shape.ranks - 1) * t.gamma / shape.ranks;
        },
    .edge = [](Shape, int from, int to) { return from != to; },
    .allows_v = true,
    .rank_order = true};

}  // namespace unisono::algorithms
