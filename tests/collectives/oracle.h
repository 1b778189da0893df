// An independent reference: the required results of every collective, in plain scalar code.
//
// Inputs are a function of (seed, rank, index). Integers, minima and maxima are exact. A float
// result may differ from the sum (product) in double by (n + 1) roundings of its format, relative
// to the sum of the magnitudes (to the product). The algorithms that document rank order (flat,
// one_shot) must give just the bits of: accumulate from rank 0 to n-1 in f32 (f64 for f64), round
// once. A reduction of no inputs is
// the operation's identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "case.h"

namespace unisono::testing {

// The origin of one element of an output.
struct Origin {
  enum class Kind : std::uint8_t { untouched, copy, reduction };
  Kind kind = Kind::untouched;
  int rank = 0;           // copy: the rank whose input it is
  int terms = 0;          // reduction: it contains the inputs of ranks 0 to terms-1
  std::size_t index = 0;  // in the input buffer, or for a reduction in all inputs
};

// The shapes of one rank's call. Buffers are as long as their last used element.
struct Shape {
  std::size_t in = 0;
  std::size_t out = 0;
  std::vector<std::size_t> counts, displs, recv_counts, recv_displs;  // as in Call
  std::vector<Origin> origins;                                        // by element of the output
  std::size_t own_offset = 0;  // in place: offset of the smaller buffer in the larger one
};
Shape shape_of(const Case& test_case, int rank);

constexpr double kPremulInteger = 3.0;
constexpr double kPremulFloat = 0.5;
double premul_factor(Dtype dtype);

// Returns the bits of one input element.
std::uint64_t input_bits(const Case& test_case, int rank, std::size_t index);
// Returns an empty text if `got` is the required value of `origin`, otherwise the mistake.
std::string check_element(const Case& test_case, const Origin& origin, std::uint64_t got);

// A hash for everything that a seed determines.
constexpr std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace unisono::testing
