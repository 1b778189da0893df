// Rounds of exchanges for recursive multiplying, for any number of ranks and any radix.
//
// Let k^m be the largest power of the radix that is at most n, and q = n / k^m rounded down. Then
// q*k^m ranks take part, and the others are folded (fold.h). The positions of the ranks that take
// part have m digits in radix k and a highest digit in radix q. In a round, positions exchange data
// if they differ only in the round's digit.
#pragma once

#include <vector>

#include "algorithms/fold.h"

namespace unisono::algorithms {

struct Round {
  int weight = 1;  // of the digit
  int size = 1;    // its radix: that many positions meet

  constexpr int digit(int position) const { return position / weight % size; }
  // Returns the position that has another digit in this place.
  constexpr int with_digit(int position, int digit_there) const {
    return position + (digit_there - digit(position)) * weight;
  }
};

class Rounds {
 public:
  Rounds(int ranks, int radix) : fold_(ranks, participants(ranks, radix)) {
    long weight = 1;
    for (; weight * radix <= ranks; weight *= radix) {
      rounds_.push_back({.weight = static_cast<int>(weight), .size = radix});
    }
    const int rest = static_cast<int>(ranks / weight);
    if (rest > 1) {
      rounds_.push_back({.weight = static_cast<int>(weight), .size = rest});
    }
  }

  const Fold& fold() const { return fold_; }
  const std::vector<Round>& all() const { return rounds_; }

  // Returns true if the ranks may meet in a round, or if one hands in to the other or hands back.
  static bool edge(Shape shape, int from, int to) {
    const int radix = shape.parameters.radix;
    const Fold fold(shape.ranks, participants(shape.ranks, radix));
    const int a = fold.position(from);
    const int b = fold.position(to);
    if (a < 0 || b < 0) {
      return from / 2 == to / 2 && from != to;
    }
    // The positions must differ in their lowest differing digit only.
    if (a == b) {
      return false;
    }
    const int apart = a > b ? a - b : b - a;
    const int weight = lowest_weight(apart, radix);
    return a % weight == b % weight && is_one_digit(a, b, weight, radix);
  }

 private:
  static constexpr int participants(int ranks, int radix) {
    long weight = 1;
    while (weight * radix <= ranks) {
      weight *= radix;
    }
    return static_cast<int>(ranks / weight * weight);
  }
  // The highest digit has no digits above it.
  static constexpr bool is_one_digit(int a, int b, int weight, int radix) {
    return a / weight / radix == b / weight / radix;
  }

  Fold fold_;
  std::vector<Round> rounds_;
};

}  // namespace unisono::algorithms
