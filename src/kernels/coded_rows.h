// Rows of floats as 8-bit integers with one f32 scale for each block of 128: what an exchange sends
// instead of them.
//
//   coded row   ceil(count / 128) scales, then count codes, padded to 4 bytes
//   scale       the greatest magnitude of the block / 127
//   code        the element * (127 / that magnitude), rounded to nearest, ties to even
//   error       at most half a scale of each element, and the rounding of the dtype
//
// A block with an infinity or a NaN is decoded as NaN; one whose magnitudes are all below 2^-119 as
// zero. The bits are the same with every instruction set.
#pragma once

#include <cstddef>

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

inline constexpr std::size_t kCodedBlock = 128;

constexpr std::size_t coded_scales(std::size_t count) {
  return (count + kCodedBlock - 1) / kCodedBlock;
}
constexpr std::size_t coded_bytes(std::size_t count) {
  return coded_scales(count) * sizeof(float) + (count + 3) / 4 * 4;
}

// `coded` is aligned to 4 bytes. None of these throws.
struct CodedRowFunctions {
  void (*encode)(void* coded, const void* row, std::size_t count) = nullptr;
  void (*decode)(void* row, const void* coded, std::size_t count, Store store) = nullptr;
  // As a WeightedSumFunction of the decoded rows, which are f32 here.
  void (*weighted_sum)(void* target, const void* addend, const void* const* coded_rows,
                       const float* factors, int row_count, std::size_t count) = nullptr;
};

// bf16, f16 and f32; the functions of other dtypes are nullptr.
CodedRowFunctions find_coded_rows(Dtype dtype);

}  // namespace unisono::kernels
