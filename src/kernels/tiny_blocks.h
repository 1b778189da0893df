// Encodes blocks of f32 that are too small for a normal scale. Elements and scale are integer
// multiples of the least f32, 2^-149. All arithmetic uses integers, so flush-to-zero mode does not
// change the bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/move_code.h"

namespace unisono::kernels {

// These functions accept the bits of magnitudes below this limit, 127 * 2^-126.
inline constexpr auto kTinyEnd = std::bit_cast<std::uint32_t>(127 * 0x1p-126F);

struct TinyBlock {
  std::uint16_t scale = 0;  // bf16 of -2^64 times the scale
  std::int8_t codes[kCodeBlock] = {};
};

// Encodes a block. `greatest`: bits of the greatest magnitude, not 0 and below kTinyEnd. The error
// of an element is at most half a scale, which is at most 0.004 times the greatest magnitude plus
// 2^-149.
TinyBlock encode_tiny(const std::byte* floats, std::uint32_t greatest);
constexpr bool is_tiny_scale(std::uint16_t scale) {
  return scale > 0x8000U && scale <= 0xff80U;
}
// Decodes a block with any scale and codes. REQUIRES: is_tiny_scale().
void decode_tiny(std::byte* floats, const TinyBlock& block);

}  // namespace unisono::kernels
