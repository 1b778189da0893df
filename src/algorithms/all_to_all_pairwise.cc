// Pairwise all_to_all: in every step the ranks form pairs, which exchange their parts.
//
//   steps    n-1 for even n, n for odd n (one rank rests in each)
//   sent     n-1 chunks per rank = (n-1)/n * S bytes, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta for even n
//   scratch  none
//   order    nothing is summed
//   limits   none; in place: a rank sends a part in the step in which another takes its place
//   source   Kirkman, Cambridge and Dublin Math. J. 2, 1847 (the pairing, a round robin tournament)
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

// The partner of a rank in a round, -1 where it rests. With an odd number m of ranks, those whose
// numbers add up to the round modulo m meet, and one would meet itself; an even n has one rank
// more, which that one meets.
constexpr int partner(int n, int round, int rank) {
  const int m = n - 1 + n % 2;
  if (rank == m) {
    return round * ((m + 1) / 2) % m;  // half the round, modulo m
  }
  const int met = wrap(round - rank, m);
  if (met != rank) {
    return met;
  }
  return n % 2 == 0 ? m : -1;
}

constexpr int rounds(int n) {
  return n == 1 ? 0 : n - 1 + n % 2;
}

Schedule build(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  for (int round = 0; round < rounds(n); ++round) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      const int to = partner(n, round, rank);
      if (to >= 0) {
        schedule.move({.from = rank, .to = to, .chunk = rank * n + to});
      }
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_to_all_pairwise{
    .name = "pairwise",
    .collective = Collective::all_to_all,
    .summary = "pairs of ranks exchange parts, a different pairing in each step",
    .source = "Kirkman, Cambridge and Dublin Math. J. 2, 1847 (round robin tournament)",
    .build = build,
    .steps = rounds,
    .chunks_sent = [](int n) { return n - 1; },
    .edge = [](Shape, int from, int to) { return from != to; },
    .allows_v = true};

}  // namespace unisono::algorithms
