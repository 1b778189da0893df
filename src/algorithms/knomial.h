// The edges of k-nomial trees, level by level.
#pragma once

#include <vector>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

// Visits every (parent, child) at the level of `weight` whose child is the `digit`-th child of its
// parent. Positions are counted from the root.
template <typename Visit>
void for_each_knomial_edge(int ranks, int radix, int weight, int digit, const Visit& visit) {
  const long apart = static_cast<long>(weight) * radix;
  const long hop = static_cast<long>(weight) * digit;
  for (long parent = 0; parent + hop < ranks; parent += apart) {
    visit(static_cast<int>(parent), static_cast<int>(parent + hop));
  }
}

// Returns 1, k, k*k, ... below n.
inline std::vector<int> weights(int ranks, int radix) {
  std::vector<int> all;
  for (long weight = 1; weight < ranks; weight *= radix) {
    all.push_back(static_cast<int>(weight));
  }
  return all;
}

// Returns the largest value that the digit of a weight can have.
constexpr int last_digit(int ranks, int radix, int weight) {
  return std::min(radix - 1, (ranks - 1) / weight);
}

// Returns true if the parent sends to the child, or the child to the parent, in a k-nomial tree.
constexpr bool is_knomial_edge(Shape shape, int parent, int child) {
  return parent != child && knomial_parent(from_root(shape, child), shape.parameters.radix) ==
                                from_root(shape, parent);
}

}  // namespace unisono::algorithms
