// A fixed summation tree over leaves: tree(a, b) = tree(a, m) + tree(m, b), where m - a is the
// largest power of two below b - a. Its sums have the same bits however the leaves are split
// between ranks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace unisono {

struct LeafRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

// Returns the leaf at which the sum over leaves [first, end) splits into its two terms. REQUIRES:
// at least two leaves.
constexpr std::size_t middle_of(std::size_t first, std::size_t end) {
  return first + std::bit_floor(end - first - 1);
}

// Returns true if the sum of these leaves is a node of tree(0, leaves).
constexpr bool is_node(LeafRange range, std::size_t leaves) {
  LeafRange whole{.end = leaves};
  while (range.first != whole.first || range.end != whole.end) {
    if (whole.end - whole.first < 2) {
      return false;
    }
    const std::size_t middle = middle_of(whole.first, whole.end);
    if (range.end <= middle) {
      whole.end = middle;
    } else if (range.first >= middle) {
      whole.first = middle;
    } else {
      return false;
    }
  }
  return true;
}

// Returns true if the sums over `lower` and `upper` are the two terms of an addition in tree(0,
// leaves).
constexpr bool are_terms(LeafRange lower, LeafRange upper, std::size_t leaves) {
  return lower.end == upper.first && middle_of(lower.first, upper.end) == lower.end &&
         is_node({lower.first, upper.end}, leaves);
}

// Appends the largest nodes of the tree over `whole` that lie inside `part`, from left to right.
inline void append_subtrees(LeafRange whole, LeafRange part, std::vector<LeafRange>& subtrees) {
  if (part.first >= whole.end || part.end <= whole.first || part.first == part.end) {
    return;
  }
  if (part.first <= whole.first && whole.end <= part.end) {
    subtrees.push_back(whole);
    return;
  }
  const std::size_t middle = middle_of(whole.first, whole.end);
  append_subtrees({whole.first, middle}, part, subtrees);
  append_subtrees({middle, whole.end}, part, subtrees);
}
inline std::vector<LeafRange> subtrees_of(std::size_t leaves, LeafRange part) {
  std::vector<LeafRange> subtrees;
  append_subtrees({.first = 0, .end = leaves}, part, subtrees);
  return subtrees;
}

// Inserts a node into `nodes`, which are ordered from left to right, and adds neighbours while they
// are the terms of an addition. `add(lower, upper)` stores the sum in the lower node. A Node has
// `first` and `end`. REQUIRES: no other node contains its leaves.
template <typename Node, typename Add>
void insert_node(std::vector<Node>& nodes, Node node, std::size_t leaves, const Add& add) {
  const auto at = std::ranges::lower_bound(nodes, node.first, {}, &Node::first);
  auto place = static_cast<std::size_t>(at - nodes.begin());
  nodes.insert(at, std::move(node));
  const auto join = [&](std::size_t at_lower) {
    Node& lower = nodes[at_lower];
    Node& upper = nodes[at_lower + 1];
    if (!are_terms({lower.first, lower.end}, {upper.first, upper.end}, leaves)) {
      return false;
    }
    add(lower, upper);
    lower.end = upper.end;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(at_lower) + 1);
    return true;
  };
  while (true) {
    if (place > 0 && join(place - 1)) {
      --place;
    } else if (place + 1 >= nodes.size() || !join(place)) {
      return;
    }
  }
}

}  // namespace unisono
