#include "kernels/tiny_blocks.h"

#include <cstring>

namespace unisono::kernels {
namespace {

constexpr std::uint32_t kMantissa = 0x7fffffU;
constexpr int kMantissaBits = 23;
constexpr std::uint32_t kMostCode = 127;
constexpr int kUnits = 149;  // a unit is 2^-149
constexpr int kScaled = 64;  // scales are stored times 2^64
constexpr std::uint32_t kMostScale = 1U << 23U;

// Converts a magnitude below kTinyEnd to units of 2^-149.
std::uint32_t units_of(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> kMantissaBits;
  return exponent == 0 ? bits : ((bits & kMantissa) | (kMantissa + 1)) << (exponent - 1);
}

// Converts units to f32 bits; exact if the number has at most 24 bits.
std::uint32_t bits_of(std::uint32_t units) {
  if (units <= kMantissa) {
    return units;
  }
  const auto shift = static_cast<std::uint32_t>(std::bit_width(units) - 1 - kMantissaBits);
  return ((shift + 1) << kMantissaBits) | ((units >> shift) & kMantissa);
}

std::uint32_t nearest_code(std::uint32_t units, std::uint32_t scale) {
  const std::uint32_t code = units / scale;
  const std::uint32_t rest = 2 * (units % scale);
  return code + ((rest > scale || (rest == scale && (code & 1U) != 0)) ? 1 : 0);
}

constexpr std::uint32_t kTried = 3;  // number of scales tried, from least_scale() on

std::uint32_t least_scale(std::uint32_t units) {
  return units < kMostCode ? 1 : units / kMostCode;
}

// Returns the least of the tried scales that divides `units` into a valid code, or 0.
std::uint32_t exact_scale(std::uint32_t units) {
  const std::uint32_t least = least_scale(units);
  for (std::uint32_t scale = least; scale < least + kTried; ++scale) {
    if (units % scale == 0 && units / scale <= kMostCode) {
      return scale;
    }
  }
  return 0;
}

// Returns a scale under which the greatest element decodes to a number that gives the same scale
// again. tiny_blocks_test checks every greatest element.
std::uint32_t scale_of(std::uint32_t units) {
  constexpr std::uint32_t kFewBits = 128 * kMostCode;
  if (units >= kFewBits) {
    // The scale has eight significant bits, and the greatest code is 127.
    const std::uint32_t quotient = units / kMostCode;
    const auto shift = static_cast<std::uint32_t>(std::bit_width(quotient) - 8);
    const std::uint32_t step = kMostCode << shift;  // units per step of the scale
    return (units + step / 2) / step << shift;
  }
  if (const std::uint32_t exact = exact_scale(units); exact != 0) {
    return exact;
  }
  std::uint32_t scale = least_scale(units);
  while (nearest_code(units, scale) > kMostCode ||
         exact_scale(nearest_code(units, scale) * scale) != scale) {
    ++scale;
  }
  return scale;
}

}  // namespace

TinyBlock encode_tiny(const std::byte* floats, std::uint32_t greatest) {
  TinyBlock block;
  const std::uint32_t scale = scale_of(units_of(greatest));
  const auto scaled = std::bit_cast<std::uint32_t>(static_cast<float>(scale));
  const auto raised = scaled - (static_cast<std::uint32_t>(kUnits - kScaled) << kMantissaBits);
  block.scale = static_cast<std::uint16_t>(0x8000U | (raised >> 16U));
  for (std::size_t i = 0; i < kCodeBlock; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, floats + i * sizeof bits, sizeof bits);
    const auto code = static_cast<std::int8_t>(nearest_code(units_of(bits & 0x7fffffffU), scale));
    block.codes[i] = static_cast<std::int8_t>((bits >> 31U) == 0 ? code : -code);
  }
  return block;
}

void decode_tiny(std::byte* floats, const TinyBlock& block) {
  const std::uint32_t raised = std::uint32_t{block.scale & 0x7fffU} << 16U;
  const auto units = std::bit_cast<float>(
      raised + (static_cast<std::uint32_t>(kUnits - kScaled) << kMantissaBits));
  // Limits invalid scales, which no encoder writes, to the valid range.
  const std::uint32_t scale =
      units >= 1 && units <= static_cast<float>(kMostScale) ? static_cast<std::uint32_t>(units) : 1;
  for (std::size_t i = 0; i < kCodeBlock; ++i) {
    const int code = block.codes[i];
    const auto magnitude = static_cast<std::uint32_t>(code < 0 ? -code : code);
    const std::uint32_t bits = bits_of(magnitude * scale) | (code < 0 ? 0x80000000U : 0U);
    std::memcpy(floats + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace unisono::kernels
