// Pipelined chain broadcast: the vector in n chunks follows the ranks like beads on a string.
//
//   steps    2(n-1): n-1 hops and n-1 more chunks behind the first
//   sent     n chunks = S bytes by every rank but the last
//   cost     2(n-1) * (alpha + S/n * beta): twice the lower bound in bytes over time, for any n
//   scratch  none
//   order    nothing is summed
//   limits   none; in place
//   source   Traeff and Ripke, JPDC 68(12), 2008
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::broadcast, {.ranks = n, .chunks = n, .root = shape.root}};
  for (int step = 0; step < 2 * (n - 1); ++step) {
    schedule.step();
    // Chunk c leaves the rank at position p in step p + c.
    for (int position = std::max(0, step - (n - 1)); position <= std::min(step, n - 2);
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
    .summary = "chunks follow each other along a chain; for long vectors",
    .source = "Traeff and Ripke, JPDC 68(12), 2008",
    .build = build,
    .steps = [](int n) { return 2 * (n - 1); },
    .chunks_sent = [](int n) { return n > 1 ? n : 0; },
    .edge = [](Shape shape, int from,
               int to) { return from_root(shape, to) == from_root(shape, from) + 1; }};

}  // namespace unisono::algorithms
