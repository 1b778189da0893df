// Sums neighbouring nodes of the tree over leaves (base/leaf_tree.h). Ranks with any ranges of
// leaves have sent these nodes.
//
// The additions form a schedule in which every node is a rank. So verify() and verify_tree_order()
// prove the additions that TreeSum runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/leaf_tree.h"
#include "schedule/schedule.h"

namespace unisono {

struct NodeSum {
  // Has one move per addition, to the node that keeps the sum; each move has a step of its own. If
  // the nodes contain all leaves, the schedule is a reduce to the node of leaf 0.
  Schedule schedule;
  // The nodes that remain, from left to right: only one if the nodes contain all leaves.
  struct Kept : LeafRange {
    std::size_t place = 0;  // in the list of nodes
  };
  std::vector<Kept> kept;
};

// Returns the additions for nodes of tree(0, leaves) in any order. REQUIRES: no two nodes share a
// leaf.
NodeSum sum_of_nodes(std::size_t leaves, std::span<const LeafRange> nodes);

}  // namespace unisono
