// Arithmetic that several algorithms share: ranks in a circle, powers of two, binomial trees.
#pragma once

#include <algorithm>
#include <source_location>
#include <string>
#include <utility>

#include "algorithms/catalog.h"
#include "schedule/compact.h"
#include "schedule/schedule.h"

namespace unisono::algorithms {

using Place = MoveSpec::Place;

// Returns i modulo n, which is never negative.
constexpr int wrap(int i, int n) {
  return ((i % n) + n) % n;
}

constexpr bool is_power_of_two(int n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// Returns the largest power of two that is at most n. REQUIRES: n >= 1.
constexpr int floor_power_of_two(int n) {
  int power = 1;
  while (power <= n / 2) {
    power *= 2;
  }
  return power;
}

constexpr int floor_log2(int n) {
  int log = 0;
  for (; n > 1; n /= 2) {
    ++log;
  }
  return log;
}

constexpr int ceil_log2(int n) {
  return n <= 1 ? 0 : floor_log2(n - 1) + 1;
}

// Returns the longest hop in a binomial tree of n ranks; 0 for n = 1.
constexpr int widest_hop(int n) {
  return n <= 1 ? 0 : floor_power_of_two(n - 1);
}

// Ranks counted from the root, and back.
constexpr int from_root(Shape shape, int rank) {
  return wrap(rank - shape.root, shape.ranks);
}
constexpr int to_rank(Shape shape, int position) {
  return wrap(position + shape.root, shape.ranks);
}

// Positions are counted from the root. A parent's position is the child's position without its
// lowest set bit. The subtree of a position begins there and is `subtree_size` long.
constexpr int binomial_parent(int position) {
  return position & (position - 1);
}
constexpr int subtree_size(int position, int ranks) {
  return position == 0 ? ranks : std::min(position & -position, ranks - position);
}

// Arithmetic for k-nomial trees and other algorithms that use the digits of a number in some radix.
// The weight of a digit is a power of the radix: 1, k, k*k, ... below n.
constexpr int heaviest(int n, int radix) {
  int weight = 1;
  while (weight <= (n - 1) / radix) {
    weight *= radix;
  }
  return weight;
}
constexpr int digits(int n, int radix) {
  int count = 0;
  for (int left = n - 1; left > 0; left /= radix) {
    ++count;
  }
  return count;
}
// Returns how many of 1, 2, ..., n-1 have exactly one non-zero digit: the children of the root of a
// k-nomial tree.
constexpr int single_digits(int n, int radix) {
  return n == 1 ? 0 : (n - 1) / heaviest(n, radix) + (digits(n, radix) - 1) * (radix - 1);
}
// Returns the weight of the lowest non-zero digit. REQUIRES: position > 0.
constexpr int lowest_weight(int position, int radix) {
  int weight = 1;
  while (position % radix == 0) {
    position /= radix;
    weight *= radix;
  }
  return weight;
}
// Positions are counted from the root. A parent's position is the child's position without its
// lowest non-zero digit; -1 for the root. The subtree of a position begins there and is
// `knomial_subtree` long.
constexpr int knomial_parent(int position, int radix) {
  if (position == 0) {
    return -1;
  }
  const int weight = lowest_weight(position, radix);
  return position - position / weight % radix * weight;
}
constexpr int knomial_subtree(int position, int ranks, int radix) {
  return position == 0 ? ranks : std::min(lowest_weight(position, radix), ranks - position);
}

// Moves chunks [spec.chunk, spec.chunk + spec.chunks) in a circle of `ranks` chunks.
inline void move_wrapped(ScheduleBuilder& schedule, MoveSpec spec, int ranks,
                         std::source_location where = std::source_location::current()) {
  spec.chunk = wrap(spec.chunk, ranks);
  const int beyond = std::max(0, spec.chunk + spec.chunks - ranks);
  spec.chunks -= beyond;
  schedule.move(spec, where);
  spec.chunk = 0;
  spec.chunks = beyond;
  schedule.move(spec, where);
}

// Returns n-1 steps in which every rank sends one chunk to the next rank of a ring.
inline CompactPhase ring_lap(std::string name, int n, bool reduces) {
  CompactPhase phase{.name = std::move(name), .steps = n - 1};
  for (int rank = 0; rank < n && n > 1; ++rank) {
    phase.messages.push_back(
        {.from = rank, .to = wrap(rank + 1, n), .chunks = 1, .reduced = reduces ? 1 : 0});
  }
  return phase;
}

}  // namespace unisono::algorithms
