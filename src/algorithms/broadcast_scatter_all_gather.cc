// Broadcast as scatter and all_gather (van de Geijn): a binomial scatter, then a ring.
//
//   steps    ceil(log2(n)) + n-1
//   sent     2(n-1) chunks = 2(n-1)/n * S bytes by the root
//   cost     (ceil(log2(n)) + n-1)*alpha + 2(n-1)/n * S*beta, so it suits long vectors
//   scratch  none
//   order    nothing is summed
//   limits   none; in place. A rank does not receive again the data that it forwarded before
//   source   Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, SHPCC 1994
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

// Chunks are counted from the root, like positions: position p gets chunk p.
Schedule build_broadcast_scatter_all_gather(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::broadcast, {.ranks = n, .chunks = n, .root = shape.root}};
  schedule.phase("scatter");
  for (int hop = widest_hop(n); hop >= 1; hop /= 2) {
    schedule.step();
    for (int position = 0; position + hop < n; position += 2 * hop) {
      schedule.move({.from = to_rank(shape, position),
                     .to = to_rank(shape, position + hop),
                     .chunk = position + hop,
                     .chunks = subtree_size(position + hop, n)});
    }
  }
  schedule.phase("all_gather");
  for (int step = 0; step < n - 1; ++step) {
    schedule.step();
    for (int position = 0; position < n; ++position) {
      const int to = (position + 1) % n;
      const int chunk = wrap(position - step, n);
      if (chunk < to || chunk >= to + subtree_size(to, n)) {
        schedule.move({.from = to_rank(shape, position), .to = to_rank(shape, to), .chunk = chunk});
      }
    }
  }
  return std::move(schedule).build();
}

constexpr int steps_broadcast_scatter_all_gather(Shape shape) {
  return ceil_log2(shape.ranks) + shape.ranks - 1;
}

}  // namespace

extern constinit const Algorithm broadcast_scatter_all_gather{
    .name = "scatter_all_gather",
    .collective = Collective::broadcast,
    .summary = "parts are scattered, then go around a ring; for long vectors",
    .source = "Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, SHPCC 1994",
    .build = build_broadcast_scatter_all_gather,
    .steps = steps_broadcast_scatter_all_gather,
    .chunks_sent = [](Shape shape) { return 2 * (shape.ranks - 1); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return steps_broadcast_scatter_all_gather(shape) * t.alpha +
                 2 * (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge =
        [](Shape shape, int from, int to) {
          const int a = from_root(shape, from);
          const int b = from_root(shape, to);
          return a != b && (binomial_parent(b) == a || b == (a + 1) % shape.ranks);
        }};

}  // namespace unisono::algorithms
