// Pipelined chain broadcast: the vector, cut into s segments, goes from rank to rank.
//
//   steps    n-2 + s: s segments leave the root, and the last one has n-2 more hops to go
//   sent     s chunks = S bytes by every rank but the last
//   cost     (n-2 + s) * (alpha + S/s * beta). The minimum is at s = sqrt((n-2) * S*beta / alpha):
//            (sqrt((n-2)*alpha) + sqrt(S*beta))^2. See optimal_segments
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Traeff and Ripke, JPDC 68(12), 2008
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_broadcast_chain(Shape shape) {
  const int n = shape.ranks;
  const int segments = shape.parameters.segments;
  ScheduleBuilder schedule{Collective::broadcast,
                           {.ranks = n, .chunks = segments, .root = shape.root}};
  for (int step = 0; step < n - 2 + segments; ++step) {
    schedule.step();
    // Chunk c leaves the rank at position p in step p + c.
    for (int position = std::max(0, step - segments + 1); position <= std::min(step, n - 2);
         ++position) {
      schedule.move({.from = to_rank(shape, position),
                     .to = to_rank(shape, position + 1),
                     .chunk = step - position});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm broadcast_chain{
    .name = "chain",
    .collective = Collective::broadcast,
    .summary = "segments follow each other along a chain; for long vectors",
    .source = "Traeff and Ripke, JPDC 68(12), 2008",
    .build = build_broadcast_chain,
    .steps =
        [](Shape shape) {
          return shape.ranks > 1 ? shape.ranks - 2 + shape.parameters.segments : 0;
        },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? shape.parameters.segments : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int segments = shape.parameters.segments;
          return shape.ranks == 1 ? 0
                                  : (shape.ranks - 2 + segments) * (t.alpha + t.beta / segments);
        },
    .edge = [](Shape shape, int from,
               int to) { return from_root(shape, to) == from_root(shape, from) + 1; },
    .defaults = [](int ranks) { return AlgorithmParameters{.segments = ranks}; }};

}  // namespace unisono::algorithms
