// Sums nodes of the tree over leaves (base/leaf_tree.h) that lie side by side, as ranks with any
// ranges of leaves have sent them.
//
// The additions are a schedule in which every node is a rank, so that verify() and
// verify_tree_order() prove what TreeSum runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/leaf_tree.h"
#include "schedule/schedule.h"

namespace unisono {

struct NodeSum {
  // One move for each addition, to the node that keeps the sum; each move has a step of its own. If
  // the nodes have all leaves, it is a reduce to the node of leaf 0.
  Schedule schedule;
  // The nodes that stay, from left to right: one if the nodes have all leaves.
  struct Kept : LeafRange {
    std::size_t place = 0;  // in the list of nodes
  };
  std::vector<Kept> kept;
};

// Returns the additions for nodes of tree(0, leaves) in any order. REQUIRES: no leaf is in two of
// them.
NodeSum sum_of_nodes(std::size_t leaves, std::span<const LeafRange> nodes);

}  // namespace unisono
