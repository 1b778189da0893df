// Binomial reduce: every rank adds up its subtree and sends the sum to its parent.
//
//   steps    ceil(log2(n))
//   sent     1 chunk = S bytes by every rank but the root
//   cost     ceil(log2(n)) * (alpha + S*beta + S*gamma)
//   scratch  one chunk on every rank that has children, but not on the root
//   order    a tree: position p adds the sums of p+1, p+2, p+4, ... in this order to its own
//   limits   none; in place
//   source   Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_binomial(Shape shape) {
  ScheduleBuilder schedule{Collective::reduce,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  for (int hop = 1; hop < shape.ranks; hop *= 2) {
    schedule.step();
    for (int position = hop; position < shape.ranks; position += 2 * hop) {
      schedule.move({.from = to_rank(shape, position),
                     .to = to_rank(shape, position - hop),
                     .combine = Combine::reduce});
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_binomial{
    .name = "binomial",
    .collective = Collective::reduce,
    .summary = "sums of subtrees go up a tree; fewest steps",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_reduce_binomial,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return ceil_log2(shape.ranks) * (t.alpha + t.beta + t.gamma);
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to && binomial_parent(from_root(shape, from)) == from_root(shape, to);
        }};

}  // namespace unisono::algorithms
