// Flat exclusive_scan: every rank sends its input to all higher ranks. A rank adds up the inputs
// that it receives.
//
//   steps    n (n > 1): n-1 inputs in rank order, one copy to the output
//   sent     n-1 chunks = (n-1) * S bytes by rank 0
//   cost     one port: (2n-3) * (alpha + S*beta) + (n-2) * S*gamma. If a rank can reach all others
//            at once, one alpha: the lowest latency for small vectors
//   scratch  one chunk on every rank but 0: the partial sum
//   order    rank r sums in the order 0, 1, ..., r-1 (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/scans.h"

namespace unisono::algorithms {
namespace {

Schedule build_exclusive_scan_flat(Shape shape) {
  ScheduleBuilder schedule{Collective::exclusive_scan, {.ranks = shape.ranks, .chunks = 1}};
  scan_in_rank_order(schedule, Collective::exclusive_scan, shape.ranks);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm exclusive_scan_flat{
    .name = "flat",
    .collective = Collective::exclusive_scan,
    .summary = "every rank sends its input to all higher ones, which reduce in rank order",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_exclusive_scan_flat,
    .steps = [](Shape shape) { return shape.ranks == 1 ? 0 : shape.ranks; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1
                     ? 0
                     : (2 * shape.ranks - 3) * (t.alpha + t.beta) + (shape.ranks - 2) * t.gamma;
        },
    .edge = [](Shape, int from, int to) { return from < to; },
    .rank_order = true};

}  // namespace unisono::algorithms
