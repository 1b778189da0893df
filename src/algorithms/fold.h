// Lets algorithms that need a certain number of participants, usually a power of two, run on n
// ranks. At least half of the ranks must participate.
//
// With n = power + rest, the first 2*rest ranks form pairs. The even rank of each pair hands its
// part to the odd rank and waits. The odd ranks of the pairs, and all ranks after the pairs,
// participate. In rank order they have the positions 0..power-1.
#pragma once

#include "algorithms/shapes.h"

namespace unisono::algorithms {

struct Fold {
  int power = 1;  // how many take part
  int rest = 0;   // how many wait

  explicit constexpr Fold(int ranks) : Fold(ranks, floor_power_of_two(ranks)) {}
  // REQUIRES: 2 * participants >= ranks.
  constexpr Fold(int ranks, int participants) : power(participants), rest(ranks - participants) {}

  // Returns the rank at a position.
  constexpr int rank(int position) const {
    return position < rest ? 2 * position + 1 : position + rest;
  }
  // Returns the position of a rank; -1 for a rank that waits.
  constexpr int position(int rank) const {
    if (rank >= 2 * rest) {
      return rank - rest;
    }
    return rank % 2 == 1 ? rank / 2 : -1;
  }
  // Returns the first rank that a position represents. A position represents its participant and
  // the rank that waits for it, if there is one. The positions [a, b) represent the ranks
  // [first_rank(a), first_rank(b)).
  constexpr int first_rank(int position) const {
    return position < rest ? 2 * position : position + rest;
  }
  // Returns the number of extra steps for handing in and handing back.
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
