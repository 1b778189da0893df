// Halving-doubling all_reduce (Rabenseifner): recursive halving, then recursive doubling.
//
//   steps    2 log2(p), with p the largest power of two <= n; 2 more unless n = p
//   sent     2(p-1) chunks = 2(p-1)/p * S bytes, the lower bound; a rank that represents a pair
//            sends p chunks more
//   cost     2 log2(p)*alpha + 2(p-1)/p * S*beta + (p-1)/p * S*gamma for n = p; otherwise
//            2 alpha + 2 S*beta + S*gamma more
//   scratch  none
//   order    a balanced tree over the positions: first pairs, then distance p/2, p/4, ..., 1
//   limits   none (a rank beyond the power of two hands its input to a neighbour); in place
//   source   Rabenseifner, ICCS 2004
#include "algorithms/fold.h"

namespace unisono::algorithms {
namespace {

void halve(ScheduleBuilder& schedule, const Fold& fold) {
  schedule.phase("reduce_scatter");
  for (int half = fold.power / 2; half >= 1; half /= 2) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      const int partner = position ^ half;
      schedule.move({.from = fold.rank(position),
                     .to = fold.rank(partner),
                     .chunk = partner & ~(half - 1),
                     .chunks = half,
                     .combine = Combine::reduce});
    }
  }
}

void gather(ScheduleBuilder& schedule, const Fold& fold) {
  schedule.phase("all_gather");
  for (int held = 1; held < fold.power; held *= 2) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      schedule.move({.from = fold.rank(position),
                     .to = fold.rank(position ^ held),
                     .chunk = position & ~(held - 1),
                     .chunks = held});
    }
  }
}

Schedule build_all_reduce_halving_doubling(Shape shape) {
  const Fold fold{shape.ranks};
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = shape.ranks, .chunks = fold.power}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move(
        {.from = 2 * pair, .to = 2 * pair + 1, .chunks = fold.power, .combine = Combine::reduce});
  }
  halve(schedule, fold);
  gather(schedule, fold);
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair + 1, .to = 2 * pair, .chunks = fold.power});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_reduce_halving_doubling{
    .name = "halving_doubling",
    .collective = Collective::all_reduce,
    .summary = "recursive halving, then recursive doubling; few steps and least bytes",
    .source = "Rabenseifner, ICCS 2004",
    .build = build_all_reduce_halving_doubling,
    .steps = [](Shape shape) { return 2 * floor_log2(shape.ranks) + Fold{shape.ranks}.steps(); },
    .chunks_sent =
        [](Shape shape) {
          const Fold fold{shape.ranks};
          return 2 * (fold.power - 1) + (fold.rest > 0 ? fold.power : 0);
        },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Fold fold{shape.ranks};
          const double folds = fold.rest > 0 ? 1 : 0;
          const double share = 1 - 1.0 / fold.power;
          return 2 * (floor_log2(shape.ranks) + folds) * t.alpha + 2 * (share + folds) * t.beta +
                 (share + folds) * t.gamma;
        },
    .edge = [](Shape shape, int from, int to) { return Fold{shape.ranks}.edge(from, to); }};

}  // namespace unisono::algorithms
