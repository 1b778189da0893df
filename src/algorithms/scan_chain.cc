// Pipelined chain scan: for each of s segments, rank r receives the sum of rank r-1, adds its own
// input, and sends the result to rank r+1.
//
//   steps    n-2 + s: s segments leave rank 0, and the last segment has n-2 more hops to go
//   sent     s chunks = S bytes by every rank but the last, the lower bound
//   cost     (n-2 + s) * (alpha + S/s * (beta + gamma)). See optimal_segments
//   scratch  none
//   order    rank r sums in the order 0, 1, ..., r, one rank at a time
//   limits   none; in place
//   source   Sanders and Traeff, EuroPVM/MPI 2006
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_scan_chain(Shape shape) {
  const int n = shape.ranks;
  const int segments = shape.parameters.segments;
  ScheduleBuilder schedule{Collective::scan, {.ranks = n, .chunks = segments}};
  for (int step = 0; step < n - 2 + segments; ++step) {
    schedule.step();
    // Chunk c leaves rank r in step r + c.
    for (int rank = std::max(0, step - segments + 1); rank <= std::min(step, n - 2); ++rank) {
      schedule.move(
          {.from = rank, .to = rank + 1, .chunk = step - rank, .combine = Combine::reduce});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scan_chain{
    .name = "chain",
    .collective = Collective::scan,
    .summary = "segments follow each other from rank to rank; least bytes, for long vectors",
    .source = "Sanders and Traeff, EuroPVM/MPI 2006",
    .build = build_scan_chain,
    .steps =
        [](Shape shape) {
          return shape.ranks > 1 ? shape.ranks - 2 + shape.parameters.segments : 0;
        },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? shape.parameters.segments : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int segments = shape.parameters.segments;
          return shape.ranks == 1
                     ? 0
                     : (shape.ranks - 2 + segments) * (t.alpha + (t.beta + t.gamma) / segments);
        },
    .edge = [](Shape, int from, int to) { return to == from + 1; },
    .defaults = [](int ranks) { return AlgorithmParameters{.segments = ranks}; }};

}  // namespace unisono::algorithms
