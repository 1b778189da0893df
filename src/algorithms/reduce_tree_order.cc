// Tree-order reduce: the sum of each node of a fixed tree is computed on the root if the node
// contains the root, otherwise on the node's first rank.
//
//   steps    ceil(log2(n))
//   sent     1 chunk = S bytes by every rank but the root
//   cost     ceil(log2(n)) * (alpha + S*beta + S*gamma)
//   scratch  one chunk on every rank that adds, but not on the root
//   order    tree(0, n), see tree_order.h, for any root
//   limits   none; in place
//   source   the binomial tree of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, counted from
//            rank 0
#include "algorithms/tree_order.h"

namespace unisono::algorithms {
namespace {

// A node of the tree, in which the sums of ranks [first, middle) and [middle, end) are added.
struct Addition {
  int first = 0;
  int middle = 0;
  int end = 0;
  int step = 0;

  // Returns the rank that adds: the root if it is in the node, otherwise the node's first rank.
  int to(int root) const { return root >= first && root < end ? root : first; }
  int from(int root) const { return to(root) >= middle ? first : middle; }
};

void collect_additions(int first, int end, std::vector<Addition>& nodes) {
  if (end - first < 2) {
    return;
  }
  const int middle = first + widest_hop(end - first);
  collect_additions(first, middle, nodes);
  collect_additions(middle, end, nodes);
  nodes.push_back(
      {.first = first, .middle = middle, .end = end, .step = ceil_log2(end - first) - 1});
}

std::vector<Addition> additions_of(int ranks) {
  std::vector<Addition> nodes;
  collect_additions(0, ranks, nodes);
  std::sort(nodes.begin(), nodes.end(), [](const Addition& a, const Addition& b) {
    return std::tie(a.step, a.first) < std::tie(b.step, b.first);
  });
  return nodes;
}

Schedule build_reduce_tree_order(Shape shape) {
  ScheduleBuilder schedule{Collective::reduce,
                           {.ranks = shape.ranks, .chunks = 1, .root = shape.root}};
  int step = -1;
  for (const Addition& node : additions_of(shape.ranks)) {
    for (; step < node.step; ++step) {
      schedule.step();
    }
    schedule.move(
        {.from = node.from(shape.root), .to = node.to(shape.root), .combine = Combine::reduce});
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm reduce_tree_order{
    .name = "tree_order",
    .collective = Collective::reduce,
    .summary = "sums over a fixed tree; each input may be a sum over several leaves",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005",
    .build = build_reduce_tree_order,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks > 1 ? 1 : 0; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return ceil_log2(shape.ranks) * (t.alpha + t.beta + t.gamma);
        },
    .edge =
        [](Shape shape, int from, int to) {
          const std::vector<Addition> nodes = additions_of(shape.ranks);
          return std::any_of(nodes.begin(), nodes.end(), [&](const Addition& node) {
            return node.from(shape.root) == from && node.to(shape.root) == to;
          });
        }};

}  // namespace unisono::algorithms
