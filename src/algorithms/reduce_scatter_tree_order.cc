// Tree-order reduce_scatter: sums over the fixed tree of tree_order.h.
//
//   steps    ceil(log2(n))
//   sent     n-1 chunks per rank, the lower bound
//   cost     log2(n)*alpha + (n-1)/n * S*(beta + gamma) for n a power of two; otherwise more,
//            because the blocks of tree_order.h wait for each other
//   scratch  the sums that a rank forwards: at most n-1 chunks per rank
//   order    tree(0, n), see tree_order.h
//   limits   none; in place
//   source   recursive halving that begins with the nearest partner; Thakur, Rabenseifner and
//            Gropp, IJHPCA 19(1), 2005
#include "algorithms/tree_order.h"

namespace unisono::algorithms {
namespace {

Schedule build_reduce_scatter_tree_order(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::reduce_scatter, {.ranks = n, .chunks = n}};
  add_tree_messages(schedule, tree_messages(n), Combine::reduce, [](int chunk) { return chunk; });
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_scatter_tree_order{
    .name = "tree_order",
    .collective = Collective::reduce_scatter,
    .summary = "sums over a fixed tree; each input may be a sum over several leaves",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_reduce_scatter_tree_order,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          if (is_power_of_two(shape.ranks)) {
            return ceil_log2(shape.ranks) * t.alpha + (1 - 1.0 / shape.ranks) * (t.beta + t.gamma);
          }
          TreeOrderTime time(shape.ranks, t);
          time.play(tree_messages(shape.ranks), Combine::reduce);
          return time.last();
        },
    .edge = [](Shape shape, int from, int to) { return is_tree_order_edge(shape.ranks, from, to); },
    .allows_v = true,
    .route =
        [](Shape shape, const Move& move) {
          return is_tree_order_route(shape.ranks, move.from, move.to, move.chunk);
        },
    .total_sent = [](Shape shape) { return shape.ranks * (shape.ranks - 1); }};

}  // namespace unisono::algorithms
