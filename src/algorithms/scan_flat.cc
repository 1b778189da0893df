// Flat scan: every rank sends its input to all higher ranks. A rank adds up the inputs that it
// receives.
//
//   steps    n+1 (n > 1): n inputs in rank order, one copy to the output
//   sent     n-1 chunks = (n-1) * S bytes by rank 0
//   cost     one port: (2n-3) * (alpha + S*beta) + (n-1) * S*gamma. If a rank can reach all others
//            at once, one alpha: the lowest latency for small vectors
//   scratch  one chunk on every rank but 0: the partial sum
//   order    rank r sums in the order 0, 1, ..., r (see rank_order.h)
//   limits   none; in place
//   source   Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007
#include "algorithms/scans.h"

namespace unisono::algorithms {
namespace {

Schedule build_scan_flat(Shape shape) {
  ScheduleBuilder schedule{Collective::scan, {.ranks = shape.ranks, .chunks = 1}};
  scan_in_rank_order(schedule, Collective::scan, shape.ranks);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scan_flat{
    .name = "flat",
    .collective = Collective::scan,
    .summary = "every rank sends its input to all higher ones, which reduce in rank order",
    .source = "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007",
    .build = build_scan_flat,
    .steps = [](Shape shape) { return shape.ranks == 1 ? 0 : shape.ranks + 1; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1
                     ? 0
                     : (2 * shape.ranks - 3) * (t.alpha + t.beta) + (shape.ranks - 1) * t.gamma;
        },
    .edge = [](Shape, int from, int to) { return from < to; },
    .rank_order = true};

}  // namespace unisono::algorithms
