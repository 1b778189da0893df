// Reduce as reduce_scatter and gather (Rabenseifner): recursive halving, then a binomial gather.
//
//   steps    2 log2(p), with p the largest power of two <= n; 1 more unless n = p
//   sent     p-1 + p/2 chunks by the neighbour of the root in the last exchange; p-1 by the root
//   cost     for long vectors: 2 log2(p)*alpha + 2(p-1)/p * S*beta + (p-1)/p * S*gamma; if n is not
//            p, alpha + S*beta + S*gamma more
//   scratch  the sums, except on the root: at most p chunks
//   order    a balanced tree over the positions: first pairs, then distance p/2, p/4, ..., 1
//   limits   none (a rank beyond the power of two hands its input to a neighbour); in place
//   source   Rabenseifner, ICCS 2004
#include "algorithms/fold.h"

namespace unisono::algorithms {
namespace {

// Ranks are counted from the rank after the root. So the root is the last rank, which never waits
// for a partner to hand in, and has the last position.
struct Positions {
  Shape shape;
  Fold fold{shape.ranks};

  int rank(int index) const { return wrap(shape.root + 1 + index, shape.ranks); }
  int index(int rank) const { return wrap(rank - shape.root - 1, shape.ranks); }
  int at(int position) const { return rank(fold.rank(position)); }
};

void halve(ScheduleBuilder& schedule, const Positions& positions) {
  schedule.phase("reduce_scatter");
  const int power = positions.fold.power;
  for (int half = power / 2; half >= 1; half /= 2) {
    schedule.step();
    for (int position = 0; position < power; ++position) {
      const int partner = position ^ half;
      schedule.move({.from = positions.at(position),
                     .to = positions.at(partner),
                     .chunk = partner & ~(half - 1),
                     .chunks = half,
                     .combine = Combine::reduce});
    }
  }
}

// The last position of each block collects the whole block.
void gather(ScheduleBuilder& schedule, const Positions& positions) {
  schedule.phase("gather");
  const int power = positions.fold.power;
  for (int held = 1; held < power; held *= 2) {
    schedule.step();
    for (int position = held - 1; position < power; position += 2 * held) {
      schedule.move({.from = positions.at(position),
                     .to = positions.at(position + held),
                     .chunk = position - (held - 1),
                     .chunks = held});
    }
  }
}

Schedule build_reduce_reduce_scatter_gather(Shape shape) {
  const Positions positions{.shape = shape};
  const Fold& fold = positions.fold;
  ScheduleBuilder schedule{Collective::reduce,
                           {.ranks = shape.ranks, .chunks = fold.power, .root = shape.root}};
  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = positions.rank(2 * pair),
                   .to = positions.rank(2 * pair + 1),
                   .chunks = fold.power,
                   .combine = Combine::reduce});
  }
  halve(schedule, positions);
  gather(schedule, positions);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_reduce_scatter_gather{
    .name = "reduce_scatter_gather",
    .collective = Collective::reduce,
    .summary = "recursive halving, then a gather of the sums; for long vectors",
    .source = "Rabenseifner, ICCS 2004",
    .build = build_reduce_reduce_scatter_gather,
    .steps =
        [](Shape shape) {
          return 2 * floor_log2(shape.ranks) + (Fold{shape.ranks}.rest > 0 ? 1 : 0);
        },
    .chunks_sent =
        [](Shape shape) {
          const int power = Fold{shape.ranks}.power;
          return power - 1 + power / 2;
        },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Fold fold{shape.ranks};
          const double handed_in = fold.rest > 0 ? t.alpha + t.beta + t.gamma : 0;
          return handed_in + 2 * floor_log2(shape.ranks) * t.alpha +
                 (fold.power - 1) * (2 * t.beta + t.gamma) / fold.power;
        },
    .edge =
        [](Shape shape, int from, int to) {
          const Positions positions{.shape = shape};
          return positions.fold.edge(positions.index(from), positions.index(to));
        }};

}  // namespace unisono::algorithms
