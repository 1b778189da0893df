// Blocks of f32 so small that no normal number is their scale: their elements are whole multiples
// of the least f32, 2^-149, and so is the scale. All of it is done in integers, so the bits are the
// same in a flush-to-zero mode.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/move_code.h"

namespace unisono::kernels {

// The bits of magnitudes below this may be given to these functions: 127 * 2^-126.
inline constexpr auto kTinyEnd = std::bit_cast<std::uint32_t>(127 * 0x1p-126F);

struct TinyBlock {
  std::uint16_t scale = 0;  // bf16, with a minus sign, of 2^64 times the scale
  std::int8_t codes[kCodeBlock] = {};
};

// `greatest`: the bits of the greatest magnitude, not 0 and below kTinyEnd. An element is off by
// at most half a scale, which is at most 0.004 times the greatest magnitude and 2^-149.
TinyBlock encode_tiny(const std::byte* floats, std::uint32_t greatest);
constexpr bool is_tiny_scale(std::uint16_t scale) {
  return scale > 0x8000U && scale <= 0xff80U;
}
// REQUIRES: is_tiny_scale(). Of any scale and codes: some numbers.
void decode_tiny(std::byte* floats, const TinyBlock& block);

}  // namespace unisono::kernels
