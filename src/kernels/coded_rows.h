// Rows of floats encoded as 8-bit codes with one f32 scale per block of 128 elements. An exchange
// sends coded rows instead of the rows themselves. Codes are i8 or f8e4m3. M is the greatest code:
// 127 for i8, 448 for f8e4m3.
//
//   coded row   ceil(count / 128) scales, then count codes, padded to 4 bytes
//   scale       the greatest magnitude of the block / M
//   code        the element * (M / that magnitude), rounded to nearest, ties to even
//   error       i8: at most half a scale of each element. f8e4m3: at most 1/16 of the element, or
//               2^-10 of a scale if that is more. The rounding of the dtype adds to this error
//
// If a peer reads a row from memory, coding saves nothing. round() and rounded_sum() read uncoded
// rows and give the same bits as coded rows.
//
// A block with an infinity or a NaN decodes to NaN. A block whose magnitudes are all below 2^-119
// (f8e4m3: 2^-108) decodes to zero. The bits are the same with every instruction set.
#pragma once

#include <cstddef>

#include "kernels/functions.h"
#include "kernels/weighted_sum.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

inline constexpr std::size_t kCodedBlock = 128;

constexpr std::size_t coded_scales(std::size_t count) {
  return (count + kCodedBlock - 1) / kCodedBlock;
}
constexpr std::size_t coded_bytes(std::size_t count) {
  return coded_scales(count) * sizeof(float) + (count + 3) / 4 * 4;
}

// Writes the result of encode() and decode() to `target_count` targets, 1 or more.
using RoundRowFunction = void (*)(void* const* targets, int target_count, const void* row,
                                  std::size_t count, Store store);

// Computes weighted_sum() of the encoded rows without encoding them. Also prefetches `next_count`
// rows of the same length for the next call.
using RoundedSumFunction = void (*)(void* target, const void* addend, const void* const* rows,
                                    const float* factors, int row_count, std::size_t count,
                                    const void* const* next_rows, int next_count);

// `coded` must be aligned to 4 bytes. None of these functions throws.
struct CodedRowFunctions {
  void (*encode)(void* coded, const void* row, std::size_t count) = nullptr;
  void (*decode)(void* row, const void* coded, std::size_t count, Store store) = nullptr;
  // Sums coded rows in f32: each code times (its scale times the row's factor).
  WeightedSumFunction weighted_sum = nullptr;
  RoundRowFunction round = nullptr;
  RoundedSumFunction rounded_sum = nullptr;
};

// Returns the functions for rows of bf16, f16 or f32 and codes of i8 or f8e4m3; null functions for
// all other types.
CodedRowFunctions find_coded_rows(Dtype dtype, Dtype code);

}  // namespace unisono::kernels
