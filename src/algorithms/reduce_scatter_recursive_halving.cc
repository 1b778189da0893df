// Recursive halving reduce_scatter: partners at distance p/2, p/4, ..., 1 exchange halves.
//
//   steps    log2(p), with p the largest power of two <= n; 2 more unless n = p
//   sent     n-1 chunks for n = p, the lower bound; n by a rank that hands in its input
//   cost     log2(p)*alpha + (n-1)/n * S*beta + (n-1)/n * S*gamma for n = p; otherwise 2 alpha and
//            up to n+1 parts more
//   scratch  the sums that a rank forwards: at most n-1 chunks per rank
//   order    a balanced tree over the positions: first pairs, then distance p/2, p/4, ..., 1
//   limits   none (a rank beyond the power of two hands its input to a neighbour); in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/fold.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_scatter_recursive_halving(Shape shape) {
  const int n = shape.ranks;
  const Fold fold{n};
  ScheduleBuilder schedule{Collective::reduce_scatter, {.ranks = n, .chunks = n}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair,
                   .to = 2 * pair + 1,
                   .chunks = n,
                   .combine = Combine::reduce,
                   .source = Place::input});
  }
  schedule.phase("halve");
  for (int half = fold.power / 2; half >= 1; half /= 2) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      const int partner = position ^ half;
      const int first = partner & ~(half - 1);
      schedule.move({.from = fold.rank(position),
                     .to = fold.rank(partner),
                     .chunk = fold.first_rank(first),
                     .chunks = fold.first_rank(first + half) - fold.first_rank(first),
                     .combine = Combine::reduce});
    }
  }
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair + 1, .to = 2 * pair, .chunk = 2 * pair});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_scatter_recursive_halving{
    .name = "recursive_halving",
    .collective = Collective::reduce_scatter,
    .summary = "partners at halving distances exchange halves; few steps and least bytes",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_reduce_scatter_recursive_halving,
    .steps = [](Shape shape) { return floor_log2(shape.ranks) + Fold{shape.ranks}.steps(); },
    .chunks_sent =
        [](Shape shape) { return Fold{shape.ranks}.rest > 0 ? shape.ranks : shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Fold fold{shape.ranks};
          // A rank at position 0 keeps the largest halves, because they contain the most pairs.
          double reduced = fold.rest > 0 ? shape.ranks : 0;
          for (int half = fold.power / 2; half >= 1; half /= 2) {
            reduced += fold.first_rank(half);
          }
          const double sent = reduced + (fold.rest > 0 ? 1 : 0);
          return (floor_log2(shape.ranks) + fold.steps()) * t.alpha +
                 (sent * t.beta + reduced * t.gamma) / shape.ranks;
        },
    .edge = [](Shape shape, int from, int to) { return Fold{shape.ranks}.edge(from, to); },
    .allows_v = true};

}  // namespace unisono::algorithms
