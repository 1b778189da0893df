// Recursive doubling all_gather: partners at distance 1, 2, 4, ... exchange all their data.
//
//   steps    log2(p), with p the largest power of two <= n; 2 more unless n = p
//   sent     n-1 chunks for n = p, the lower bound; up to twice as many for a rank that represents
//            a pair
//   cost     log2(p)*alpha + (n-1)/n * S*beta for n = p; otherwise plus 2 alpha and up to n chunks
//   scratch  none
//   order    nothing is summed
//   limits   none (a rank beyond the power of two hands its part to a neighbour); in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/fold.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_recursive_doubling(Shape shape) {
  const int n = shape.ranks;
  const Fold fold{n};
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair, .to = 2 * pair + 1, .chunk = 2 * pair});
  }
  schedule.phase("exchange");
  for (int held = 1; held < fold.power; held *= 2) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      const int first = position & ~(held - 1);
      schedule.move({.from = fold.rank(position),
                     .to = fold.rank(position ^ held),
                     .chunk = fold.first_rank(first),
                     .chunks = fold.first_rank(first + held) - fold.first_rank(first)});
    }
  }
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    const int even = 2 * pair;
    schedule.move({.from = even + 1, .to = even, .chunk = 0, .chunks = even});
    schedule.move({.from = even + 1, .to = even, .chunk = even + 1, .chunks = n - even - 1});
  }
  return std::move(schedule).build();
}

// The rank at position 0 sends most, because the blocks that begin there contain the most pairs.
constexpr int chunks_sent(int n) {
  const Fold fold{n};
  int sent = fold.rest > 0 ? n - 1 : 0;
  for (int held = 1; held < fold.power; held *= 2) {
    sent += fold.first_rank(held);
  }
  return sent;
}

}  // namespace

extern constinit const Algorithm all_gather_recursive_doubling{
    .name = "recursive_doubling",
    .collective = Collective::all_gather,
    .summary = "partners at doubling distances exchange all they have; best for powers of two",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_all_gather_recursive_doubling,
    .steps = [](Shape shape) { return floor_log2(shape.ranks) + Fold{shape.ranks}.steps(); },
    .chunks_sent = [](Shape shape) { return chunks_sent(shape.ranks); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Fold fold{shape.ranks};
          const int chunks =
              chunks_sent(shape.ranks) + (fold.rest > 0 ? 1 : 0);  // and the part handed in
          return (floor_log2(shape.ranks) + fold.steps()) * t.alpha + chunks * t.beta / shape.ranks;
        },
    .edge = [](Shape shape, int from, int to) { return Fold{shape.ranks}.edge(from, to); },
    .allows_v = true};

}  // namespace unisono::algorithms
