// Rows of floats as codes of 8 bits with one f32 scale for each block of 128: what an exchange
// sends instead of them. Codes are i8 or f8e4m3, whose greatest, M, is 127 or 448.
//
//   coded row   ceil(count / 128) scales, then count codes, padded to 4 bytes
//   scale       the greatest magnitude of the block / M
//   code        the element * (M / that magnitude), rounded to nearest, ties to even
//   error       i8: at most half a scale of each element. f8e4m3: at most 1/16 of the element, or
//               2^-10 of a scale if that is more. Besides, the rounding of the dtype
//
// Where a peer reads a row from memory, nothing is gained by coding it: round() and rounded_sum()
// read rows as they are, and give the bits that coded ones would.
//
// A block with an infinity or a NaN is decoded as NaN; one whose magnitudes are all below 2^-119
// (f8e4m3: 2^-108) as zero. The bits are the same with every instruction set.
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

// Writes what decode() would give after encode() to `target_count` places, 1 or more.
using RoundRowFunction = void (*)(void* const* targets, int target_count, const void* row,
                                  std::size_t count, Store store);

// weighted_sum() of what encode() would give. Meanwhile it fetches `next_count` rows, those of the
// next call, of the same length.
using RoundedSumFunction = void (*)(void* target, const void* addend, const void* const* rows,
                                    const float* factors, int row_count, std::size_t count,
                                    const void* const* next_rows, int next_count);

// `coded` is aligned to 4 bytes. None of these throws.
struct CodedRowFunctions {
  void (*encode)(void* coded, const void* row, std::size_t count) = nullptr;
  void (*decode)(void* row, const void* coded, std::size_t count, Store store) = nullptr;
  // Sums decoded rows, which are f32 here: each code times (its scale times the row's factor).
  WeightedSumFunction weighted_sum = nullptr;
  RoundRowFunction round = nullptr;
  RoundedSumFunction rounded_sum = nullptr;
};

// For rows of bf16, f16 and f32, and codes of i8 and f8e4m3; all others are nullptr.
CodedRowFunctions find_coded_rows(Dtype dtype, Dtype code);

}  // namespace unisono::kernels
