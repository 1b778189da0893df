// Reads, combines and writes elements of each data type in kernels, with the same bits as the CPU
// kernels (kernels/reference.h). Narrow floats are summed in f32 and rounded once.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dtypes.h"
#include "device/image.h"

namespace unisono::device {

template <class To, class From>
UNISONO_DEVICE inline To bits_as(From value) {
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

// A float with `kExponent` exponent and `kMantissa` mantissa bits. kInfinity: the format has
// infinity. Otherwise the largest code is NaN, and overflow becomes NaN (OCP E4M3).
template <class Bits, int kExponent, int kMantissa, bool kInfinity>
struct NarrowFloat {
  using Stored = Bits;
  using Value = float;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::uint32_t kSign = 1U << (kExponent + kMantissa);
  static constexpr std::uint32_t kTop = ((1U << kExponent) - 1) << kMantissa;

  static UNISONO_DEVICE float decode(Bits stored) {
    const std::uint32_t code = stored & (kSign - 1);
    const std::uint32_t sign = (stored & kSign) != 0 ? 0x80000000U : 0;
    if constexpr (kExponent == 8) {
      return bits_as<float>(static_cast<std::uint32_t>(stored) << 16);
    }
    const bool special = kInfinity ? code >= kTop : code == kSign - 1;
    if (special) {
      const std::uint32_t fraction = kInfinity ? code & ((1U << kMantissa) - 1) : 1;
      return bits_as<float>(sign | 0x7f800000U | (fraction != 0 ? 0x400000U : 0));
    }
    // Reads the code as an f32 with a wrong exponent, corrected by an exact product.
    const float scale = bits_as<float>(static_cast<std::uint32_t>(254 - kBias) << 23);
    const float value = bits_as<float>(code << (23 - kMantissa)) * scale;
    return bits_as<float>(bits_as<std::uint32_t>(value) | sign);
  }
  static UNISONO_DEVICE Bits encode(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 31 != 0 ? kSign : 0;
    const std::uint32_t size = bits & 0x7fffffffU;
    constexpr int kShift = 23 - kMantissa;
    if (size > 0x7f800000U) {
      constexpr std::uint32_t nan = kInfinity ? kTop | (1U << (kMantissa - 1)) : kSign - 1;
      return static_cast<Bits>(sign | nan);
    }
    std::uint32_t code;
    if (kExponent != 8 && size < static_cast<std::uint32_t>(128 - kBias) << 23) {
      // Subnormal: adding `unit` rounds to the result's last place.
      const float unit = bits_as<float>(static_cast<std::uint32_t>(128 - kBias + kShift) << 23);
      code = bits_as<std::uint32_t>(bits_as<float>(size) + unit) - bits_as<std::uint32_t>(unit);
    } else {
      const std::uint32_t rounded = size + ((1U << (kShift - 1)) - 1) + ((size >> kShift) & 1U);
      code = (rounded - (static_cast<std::uint32_t>(127 - kBias) << 23)) >> kShift;
      const std::uint32_t limit = kInfinity ? kTop : kSign - 1;
      code = rounded >> 31 != 0 || code > limit ? limit : code;
    }
    return static_cast<Bits>(sign | code);
  }
};

template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static UNISONO_DEVICE T decode(T value) { return value; }
  static UNISONO_DEVICE T encode(T value) { return value; }
};

template <Dtype kDtype, class T = TypeOf<kDtype>, bool kNative = std::is_arithmetic_v<T>>
struct Element : Plain<T> {};
template <Dtype kDtype, class T>
struct Element<kDtype, T, false>
    : NarrowFloat<decltype(T::bits), traits_of(kDtype).exponent_bits,
                  traits_of(kDtype).mantissa_bits, traits_of(kDtype).has_infinity> {};

// bool is a byte with logical operations; it uses the table of the integers (find()).
template <ReduceOp kOp, class T>
UNISONO_DEVICE inline T combine(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (kOp == ReduceOp::sum) {
      return a + b;
    } else if constexpr (kOp == ReduceOp::prod) {
      return a * b;
    } else if constexpr (kOp == ReduceOp::min) {
      return b < a || b != b ? b : a;
    } else {
      return a < b || b != b ? b : a;
    }
  } else {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if constexpr (kOp == ReduceOp::sum) {
      return static_cast<T>(x + y);
    } else if constexpr (kOp == ReduceOp::prod) {
      return static_cast<T>(x * y);
    } else if constexpr (kOp == ReduceOp::min) {
      return b < a ? b : a;
    } else if constexpr (kOp == ReduceOp::max) {
      return b > a ? b : a;
    } else if constexpr (kOp == ReduceOp::band) {
      return static_cast<T>(x & y);
    } else if constexpr (kOp == ReduceOp::bor) {
      return static_cast<T>(x | y);
    } else if constexpr (kOp == ReduceOp::bxor) {
      return static_cast<T>(x ^ y);
    } else if constexpr (kOp == ReduceOp::land) {
      return static_cast<T>(a != 0 && b != 0);
    } else if constexpr (kOp == ReduceOp::lor) {
      return static_cast<T>(a != 0 || b != 0);
    } else {
      return static_cast<T>((a != 0) != (b != 0));
    }
  }
}

// Type of a sum: for avg of integers a wider integer, otherwise the value's own type.
template <class Element, bool kAverage>
struct Accumulator {
  using Value = typename Element::Value;
  using Wide =
      std::conditional_t<kAverage && std::is_integral_v<Value> && sizeof(Value) < 8,
                         std::conditional_t<std::is_signed_v<Value>, std::int64_t, std::uint64_t>,
                         Value>;
};

template <class Element, class Wide>
UNISONO_DEVICE inline typename Element::Stored divide(Wide sum, std::uint32_t divisor) {
  using Value = typename Element::Value;
  if constexpr (std::is_floating_point_v<Value>) {
    // Rounds the sum, then the quotient, as algorithms that store the sum before dividing it do.
    return Element::encode(Element::decode(Element::encode(sum)) / static_cast<Value>(divisor));
  } else {
    return static_cast<Value>(sum / static_cast<Wide>(divisor));
  }
}

}  // namespace unisono::device
