// Copies, reduces and scales arrays with SIMD. One run-time dispatch (Highway) selects plain
// function pointers.
#pragma once

#include <bit>
#include <cstddef>

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

inline constexpr int kMaxSources = 64;

// Returns nullptr if the pair is not supported (bitwise operations on floats, `user`, ...).
ReduceFunction find_reduce(Dtype dtype, ReduceOp op);

// Returns nullptr for types other than f32 and f64.
ScaledSumFunction find_scaled_sum(Dtype dtype);

ScaleFunction find_multiply(Dtype dtype);
ScaleFunction find_divide(Dtype dtype);

// For avg of types in which sums could overflow: find_widen() converts to a wider type,
// find_average() divides and converts back. 8-bit integers are widened to 32 bits and 32-bit
// integers to 64. Functions for integers ignore the factor, and their average truncates. Floats
// narrower than 32 bits become f32, are multiplied by the factor, and are rounded once. Both
// functions return nullptr for other types. REQUIRES: at most 2^20 ranks.
ScaleFunction find_widen(Dtype dtype);
ScaleFunction find_average(Dtype dtype);

// avg of floats multiplies each rank's contribution by `factor`, so that no sum overflows, and
// divides the sum by `divisor`. The factor is a power of two, so the product is exact except for
// the smallest numbers, whose lowest bits are rounded.
struct AverageScale {
  double factor = 1;
  double divisor = 1;
};
constexpr AverageScale average_scale(int ranks) {
  const double factor = 1.0 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(ranks)));
  return {.factor = factor, .divisor = ranks * factor};
}

void copy(void* target, const void* source, std::size_t bytes, Store store) noexcept;
void fence_streaming() noexcept;

// Returns the SIMD target that the dispatch chose on this CPU, such as "AVX3_ZEN4".
const char* target_name();

}  // namespace unisono::kernels
