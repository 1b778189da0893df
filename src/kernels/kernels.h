// Copy, reduce and scale: SIMD behind one run-time dispatch (Highway), as plain function pointers.
#pragma once

#include <bit>
#include <cstddef>

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

inline constexpr int kMaxSources = 64;

// nullptr: the pair is not supported (bitwise ops on floats, `user`, ...).
ReduceFunction find_reduce(Dtype dtype, ReduceOp op);

// Returns nullptr for other types than f32 and f64.
ScaledSumFunction find_scaled_sum(Dtype dtype);

ScaleFunction find_multiply(Dtype dtype);
ScaleFunction find_divide(Dtype dtype);

// avg of types whose sums do not fit: to a wider type, and back, divided. Integers of 8 bits go to
// 32, those of 32 to 64, whatever the factor, and truncate; floats of less than 32 bits go to f32,
// times the factor, and are rounded once. nullptr for other types. REQUIRES: at most 2^20 ranks.
ScaleFunction find_widen(Dtype dtype);
ScaleFunction find_average(Dtype dtype);

// avg of floats multiplies each rank's contribution by `factor`, so that no sum overflows, and
// divides the sum by `divisor`. The factor is a power of two: that is exact but for the smallest
// numbers, whose lowest bits are rounded.
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

// "AVX3_ZEN4", ...: what the dispatch chose on this CPU.
const char* target_name();

}  // namespace unisono::kernels
