// A round robin tournament: in every round the ranks form pairs, each pair once.
#pragma once

#include "algorithms/shapes.h"

namespace unisono::algorithms {

// The partner of a rank in a round, -1 where it rests. With an odd number m of ranks, those whose
// numbers add up to the round modulo m meet, and one would meet itself; an even n has one rank
// more, which that one meets.
constexpr int partner(int n, int round, int rank) {
  const int m = n - 1 + n % 2;
  if (rank == m) {
    return round * ((m + 1) / 2) % m;  // half the round, modulo m
  }
  const int met = wrap(round - rank, m);
  if (met != rank) {
    return met;
  }
  return n % 2 == 0 ? m : -1;
}

constexpr int pairing_rounds(int n) {
  return n == 1 ? 0 : n - 1 + n % 2;
}

}  // namespace unisono::algorithms
