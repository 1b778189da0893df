// A round robin tournament: in every round the ranks form pairs, and each pair occurs once.
#pragma once

#include "algorithms/shapes.h"

namespace unisono::algorithms {

// Returns the partner of a rank in a round; -1 if the rank rests. With an odd number m of ranks,
// two ranks meet if their numbers add up to the round modulo m; one rank would meet itself and
// rests. With an even n, m is n-1, and the last rank meets the rank that would rest.
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
