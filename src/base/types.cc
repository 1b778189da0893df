// Names of the enumeration values, and conversions of the narrow float formats.
#include "unisono/types.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/collectives.h"
#include "base/dtypes.h"

namespace unisono {
namespace {

constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames = {
    "sum",  "prod", "min", "max",  "avg",        "band", "bor",
    "bxor", "land", "lor", "lxor", "premul_sum", "user"};

// Returns the table row with this name.
template <typename Table>
auto find_name(const Table& table, std::string_view text) {
  return std::find_if(table.begin(), table.end(),
                      [text](const auto& traits) { return traits.name == text; });
}

// Decodes a narrow float. If the format has infinity, the top exponent means infinity and NaN
// (IEEE); otherwise only the all-ones code is NaN (OCP E4M3).
float widen(std::uint32_t bits, const DtypeTraits& format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1U << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const bool negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1U) != 0;
  float magnitude = 0;
  if (exponent == exponent_mask && format.has_infinity) {
    magnitude = mantissa != 0 ? std::nanf("") : HUGE_VALF;
  } else if (exponent == exponent_mask && mantissa == mantissa_mask) {
    magnitude = std::nanf("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - bias - format.mantissa_bits);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa | (mantissa_mask + 1)),
                           static_cast<int>(exponent) - bias - format.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even, by scaling so that one unit in the last place becomes 1.
std::uint32_t narrow(float value, const DtypeTraits& format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1U << format.exponent_bits) - 1;
  const std::uint32_t sign = (std::signbit(value) ? 1U : 0U)
                             << (format.mantissa_bits + format.exponent_bits);
  const std::uint32_t infinity = exponent_mask << format.mantissa_bits;
  const std::uint32_t nan = format.has_infinity ? infinity | (1U << (format.mantissa_bits - 1))
                                                : infinity | mantissa_mask;
  if (std::isnan(value)) {
    return sign | nan;
  }
  const float magnitude = std::fabs(value);
  if (std::isinf(value)) {
    return sign | (format.has_infinity ? infinity : nan);
  }
  int exponent = 0;
  std::frexp(magnitude, &exponent);             // magnitude in [0.5, 1) * 2^exponent
  exponent = std::max(exponent - 1, 1 - bias);  // subnormals share the lowest exponent
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const auto units =
      static_cast<std::uint32_t>(std::nearbyint(static_cast<double>(magnitude) / unit));
  // A carry out of the mantissa correctly increments the exponent.
  const std::uint32_t bits =
      units == 0
          ? 0
          : (static_cast<std::uint32_t>(exponent + bias - 1) << format.mantissa_bits) + units;
  const std::uint32_t largest = format.has_infinity ? infinity - 1 : (infinity | mantissa_mask) - 1;
  return sign | (bits > largest ? (format.has_infinity ? infinity : nan) : bits);
}

}  // namespace

std::string_view to_string(Dtype dtype) {
  return traits_of(dtype).name;
}
std::string_view to_string(ReduceOp op) {
  return kReduceOpNames.at(static_cast<std::size_t>(op));
}
std::string_view to_string(Collective collective) {
  return traits_of(collective).name;
}
std::optional<Dtype> parse_dtype(std::string_view text) {
  const auto* const found = find_name(kDtypes, text);
  return found == kDtypes.end() ? std::nullopt : std::optional(found->dtype);
}
std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  const auto* const found = std::find(kReduceOpNames.begin(), kReduceOpNames.end(), text);
  return found == kReduceOpNames.end()
             ? std::nullopt
             : std::optional(static_cast<ReduceOp>(found - kReduceOpNames.begin()));
}
std::optional<Collective> parse_collective(std::string_view text) {
  const auto* const found = find_name(kCollectives, text);
  return found == kCollectives.end() ? std::nullopt : std::optional(found->collective);
}

float to_float(f16 value) {
  return widen(value.bits, traits_of(Dtype::f16));
}
float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
float to_float(f8e4m3 value) {
  return widen(value.bits, traits_of(Dtype::f8e4m3));
}
float to_float(f8e5m2 value) {
  return widen(value.bits, traits_of(Dtype::f8e5m2));
}
f16 to_f16(float value) {
  return {static_cast<std::uint16_t>(narrow(value, traits_of(Dtype::f16)))};
}
bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  }
  const std::uint32_t to_even = 0x7fffU + ((bits >> 16) & 1U);
  return {static_cast<std::uint16_t>((bits + to_even) >> 16)};
}
f8e4m3 to_f8e4m3(float value) {
  return {static_cast<std::uint8_t>(narrow(value, traits_of(Dtype::f8e4m3)))};
}
f8e5m2 to_f8e5m2(float value) {
  return {static_cast<std::uint8_t>(narrow(value, traits_of(Dtype::f8e5m2)))};
}

}  // namespace unisono
