// Any number of ranks for algorithms that want a power of two, or another number of them that is at
// least half of all.
//
// With n = power + rest, the first 2*rest ranks form pairs. The even one of a pair hands its part
// to the odd one and waits; the odd one and all ranks behind the pairs are the participants, which
// have positions 0..power-1 in rank order.
#pragma once

#include "algorithms/shapes.h"

namespace unisono::algorithms {

struct Fold {
  int power = 1;  // how many take part
  int rest = 0;   // how many wait

  explicit constexpr Fold(int ranks) : Fold(ranks, floor_power_of_two(ranks)) {}
  // REQUIRES: 2 * participants >= ranks.
  constexpr Fold(int ranks, int participants) : power(participants), rest(ranks - participants) {}

  // The rank at a position.
  constexpr int rank(int position) const {
    return position < rest ? 2 * position + 1 : position + rest;
  }
  // The position of a rank, -1 for a rank that waits.
  constexpr int position(int rank) const {
    if (rank >= 2 * rest) {
      return rank - rest;
    }
    return rank % 2 == 1 ? rank / 2 : -1;
  }
  // The first of the ranks that a position stands for: its own, and that of its pair. All ranks of
  // positions [a, b) are [first_rank(a), first_rank(b)).
  constexpr int first_rank(int position) const {
    return position < rest ? 2 * position : position + rest;
  }
  // Steps added by handing in and handing back.
  constexpr int steps() const { return rest > 0 ? 2 : 0; }

  // Returns true if an algorithm that pairs positions differing in one bit may use this edge.
  constexpr bool edge(int from, int to) const {
    const int a = position(from);
    const int b = position(to);
    if (a >= 0 && b >= 0) {
      return is_power_of_two(a ^ b);
    }
    return from / 2 == to / 2 && from != to;
  }
};

}  // namespace unisono::algorithms
