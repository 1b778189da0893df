// Neighbour exchange all_gather: a rank exchanges with its left and its right neighbour in turn,
// and forwards to one side the data that came from the other side.
//
//   steps    n/2
//   sent     n-1 chunks per rank, the lower bound
//   cost     n/2 * alpha + (n-1)/n * S*beta: half as many messages as a ring; they use both
//            directions of the links
//   scratch  none
//   order    nothing is summed
//   limits   n even, or 1; in place
//   source   Chen, Zhang, Zhang and Yuan, HPC-Asia 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

// Even and odd ranks turn in opposite directions: rank 0 exchanges with 1 first, then n-1, then 1
// again.
constexpr int neighbour(int rank, int step, int n) {
  const bool up = (rank + step) % 2 == 0;
  return wrap(rank + (up ? 1 : -1), n);
}

Schedule build_all_gather_neighbour_exchange(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};
  if (n == 1) {
    return std::move(schedule).build();
  }
  schedule.step();
  for (int rank = 0; rank < n; ++rank) {
    schedule.move({.from = rank, .to = neighbour(rank, 0, n), .chunk = rank});
  }
  // From now on the parts of pairs (2i, 2i+1) circulate; the parts of even ranks come from below
  // first.
  for (int step = 1; step < n / 2; ++step) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      // The data of the previous step: first this rank's own pair, then one pair from each side in
      // turn.
      const int far = step / 2 * 2;
      const bool from_below = neighbour(rank, step, n) == wrap(rank + 1, n);
      const int pair = wrap(rank / 2 * 2 + (from_below ? -far : far), n);
      schedule.move({.from = rank, .to = neighbour(rank, step, n), .chunk = pair, .chunks = 2});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_neighbour_exchange{
    .name = "neighbour_exchange",
    .collective = Collective::all_gather,
    .summary = "ranks alternate between both neighbours; half the messages of a ring",
    .source = "Chen, Zhang, Zhang and Yuan, HPC-Asia 2005",
    .build = build_all_gather_neighbour_exchange,
    .steps = [](Shape shape) { return shape.ranks / 2; },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks / 2 * t.alpha + (shape.ranks - 1) * t.beta / shape.ranks;
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to &&
                 (to == wrap(from + 1, shape.ranks) || from == wrap(to + 1, shape.ranks));
        },
    .allows_v = true,
    .supports = [](Shape shape) { return shape.ranks == 1 || shape.ranks % 2 == 0; },
    .limits = "n even, or 1"};

}  // namespace unisono::algorithms
