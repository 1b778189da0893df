// Every rank's data, and the expected result: computed from (seed, rank, index) alone, in plain
// scalar code that shares nothing with the library.
//
// If the sum over all ranks can be represented exactly, values are small integers: every order of
// summation then gives the same bits, and a single wrong bit is detected. Otherwise (narrow floats
// and many ranks, or --data random), values are random in [-1, 1], and a result may differ from the
// exact one by ranks * epsilon * (sum of magnitudes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/cases.h"

namespace unisono::cli {

struct DataRule {
  std::uint64_t seed = 0;
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  int ranks = 1;
  bool exact = true;
  unsigned mask = 0;  // exact values are 0..mask
};

inline constexpr double kPremulFactor = 2.0;

DataRule data_rule(const Case& row, int ranks, std::uint64_t seed, bool random);
// "exact", or the bound as text.
std::string bound_text(const DataRule& rule);

// Writes elements [first, first + count) of rank `rank`'s input.
void fill(const DataRule& rule, int rank, std::size_t first, std::size_t count, void* data);

// Fills a rank's whole input for a case, and the output with values that no result can have. `in`
// and `out` point to the beginning of the call's buffers.
void fill_case(const Case& row, const CaseCounts& layout, const DataRule& rule, int rank, void* in,
               void* out);

// Returns the number of wrong elements in the output.
std::uint64_t check_case(const Case& row, const CaseCounts& layout, const DataRule& rule, int rank,
                         const void* out);

}  // namespace unisono::cli
