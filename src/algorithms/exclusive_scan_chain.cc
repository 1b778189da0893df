// Pipelined chain exclusive_scan: for each of s segments, rank r receives its result from rank r-1,
// and sends the sum of this result and its own input to rank r+1.
//
//   steps    2(n-2 + s) - 1, because a local sum comes between two hops; s for two ranks
//   sent     s chunks = S bytes by every rank but the last, the lower bound
//   cost     (n-2 + s) * (alpha + S/s * beta), and for n > 2 also (n-3 + s) * S/s * gamma
//   scratch  on ranks 1 to n-2: the sums to be sent
//   order    rank r sums in the order 0, 1, ..., r-1, one rank at a time
//   limits   none; in place. The input is copied first, because the result overwrites it
//   source   Sanders and Traeff, EuroPVM/MPI 2006
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_exclusive_scan_chain(Shape shape) {
  const int n = shape.ranks;
  const int segments = shape.parameters.segments;
  ScheduleBuilder schedule{Collective::exclusive_scan, {.ranks = n, .chunks = segments}};
  for (int hop = 0; hop < n - 2 + segments; ++hop) {
    const int first = std::max(0, hop - segments + 1);
    schedule.step();
    // Chunk c leaves rank r in hop r + c.
    for (int rank = first; rank <= std::min(hop, n - 2); ++rank) {
      schedule.move({.from = rank,
                     .to = rank + 1,
                     .chunk = hop - rank,
                     .source = rank == 0 ? Place::input : Place::scratch});
    }
    if (first + 1 <= n - 2) {
      schedule.step();
    }
    for (int rank = first + 1; rank <= std::min(hop + 1, n - 2); ++rank) {
      schedule.move({.from = rank,
                     .to = rank,
                     .chunk = hop + 1 - rank,
                     .combine = Combine::reduce,
                     .source = Place::output,
                     .target = Place::scratch});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm exclusive_scan_chain{
    .name = "chain",
    .collective = Collective::exclusive_scan,
    .summary = "segments follow each other from rank to rank; least bytes, for long vectors",
    .source = "Sanders and Traeff, EuroPVM/MPI 2006",
    .build = build_exclusive_scan_chain,
    .steps =
        [](Shape shape) {
          const int hops = shape.ranks - 2 + shape.parameters.segments;
          return shape.ranks > 2 ? 2 * hops - 1 : shape.ranks == 2 ? hops : 0;
        },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? shape.parameters.segments : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int segments = shape.parameters.segments;
          const int hops = shape.ranks == 1 ? 0 : shape.ranks - 2 + segments;
          const int sums = shape.ranks > 2 ? hops - 1 : 0;
          return hops * (t.alpha + t.beta / segments) + sums * t.gamma / segments;
        },
    .edge = [](Shape, int from, int to) { return to == from + 1; },
    .in_place = false,
    .defaults = [](int ranks) { return AlgorithmParameters{.segments = ranks}; }};

}  // namespace unisono::algorithms
