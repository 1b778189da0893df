// Recursive doubling all_reduce: partners at distance 1, 2, 4, ... exchange their sums.
//
//   steps    log2(p), with p the largest power of two <= n; 2 more unless n = p
//   sent     log2(p) chunks = log2(p) * S bytes; 1 more for a rank that represents a pair
//   cost     log2(p) * (alpha + S*beta + S*gamma) for n = p; otherwise 2 alpha + 2 S*beta + S*gamma
//            more
//   scratch  none
//   order    a balanced tree over the positions. Both partners add the same two sums, and addition
//            commutes, so all ranks have the same bits
//   limits   none (a rank beyond the power of two hands its input to a neighbour); in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/fold.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_reduce_recursive_doubling(Shape shape) {
  const Fold fold{shape.ranks};
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = shape.ranks, .chunks = 1}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair, .to = 2 * pair + 1, .combine = Combine::reduce});
  }
  schedule.phase("exchange");
  for (int distance = 1; distance < fold.power; distance *= 2) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      schedule.move({.from = fold.rank(position),
                     .to = fold.rank(position ^ distance),
                     .combine = Combine::reduce});
    }
  }
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair + 1, .to = 2 * pair});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_reduce_recursive_doubling{
    .name = "recursive_doubling",
    .collective = Collective::all_reduce,
    .summary = "partners at doubling distances exchange sums; fewest steps",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_all_reduce_recursive_doubling,
    .steps = [](Shape shape) { return floor_log2(shape.ranks) + Fold{shape.ranks}.steps(); },
    .chunks_sent =
        [](Shape shape) { return floor_log2(shape.ranks) + (Fold{shape.ranks}.rest > 0 ? 1 : 0); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const double folds = Fold{shape.ranks}.rest > 0 ? 1 : 0;
          return (floor_log2(shape.ranks) + 2 * folds) * (t.alpha + t.beta) +
                 (floor_log2(shape.ranks) + folds) * t.gamma;
        },
    .edge = [](Shape shape, int from, int to) { return Fold{shape.ranks}.edge(from, to); }};

}  // namespace unisono::algorithms
