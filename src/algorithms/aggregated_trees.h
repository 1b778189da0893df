// The parallel aggregated trees of PAT: for each step, the parts that move and how far they move.
//
// In an all_gather, each rank's part goes down a binomial tree over the other ranks. Seen from its
// owner, the tree is the same for each rank. A rank at distance d from the owner sends to the ranks
// at distance d + 2^b, for every bit b below the lowest bit of d, the highest bit first. The first
// steps handle the highest bits of all trees, one bit per step, as long as no message has more than
// `aggregate` parts. The remaining subtrees have 2^low distances each. All of them are walked depth
// first at the same time, so that a rank holds only few parts for the ranks below it.
#pragma once

#include <vector>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

struct TreeStep {
  int hop = 1;                    // from the distance d to d + hop
  std::vector<int> reached = {};  // the distances that are reached
};

inline std::vector<TreeStep> tree_steps(int ranks, int aggregate) {
  std::vector<TreeStep> steps;
  // High bits: 1, 2, 4, ... parts in a message.
  int block = ceil_log2(ranks) == 0 ? 1 : 2 * widest_hop(ranks);
  for (int parts = 1; block > 1 && 2L * parts <= aggregate; parts *= 2) {
    TreeStep step{.hop = block / 2};
    for (int distance = step.hop; distance < ranks; distance += block) {
      step.reached.push_back(distance);
    }
    steps.push_back(std::move(step));
    block /= 2;
  }
  // Low bits: the distances of a subtree, each after its parent, the far ones first.
  std::vector<int> open;
  for (int hop = 1; hop < block; hop *= 2) {
    open.push_back(hop);
  }
  while (!open.empty()) {
    const int low = open.back();
    open.pop_back();
    TreeStep step{.hop = low & -low};
    for (int distance = low; distance < ranks; distance += block) {
      step.reached.push_back(distance);
    }
    if (!step.reached.empty()) {
      steps.push_back(step);
    }
    for (int hop = 1; hop < step.hop; hop *= 2) {
      open.push_back(low + hop);
    }
  }
  return steps;
}

// Counts one step per high bit, and one step per distance of a subtree.
constexpr int tree_step_count(Shape shape) {
  int high = 0;
  int block = shape.ranks == 1 ? 1 : 2 * widest_hop(shape.ranks);
  for (int parts = 1; block > 1 && 2L * parts <= shape.parameters.aggregate; parts *= 2) {
    ++high;
    block /= 2;
  }
  return high + std::min(block, shape.ranks) - 1;
}

// Returns true if the trees have a hop between these distances.
constexpr bool is_tree_hop(Shape shape, int distance) {
  return is_power_of_two(distance) && distance < shape.ranks;
}

}  // namespace unisono::algorithms
