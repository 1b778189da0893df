// Scalar reference of the reductions; see reference.h.
#include "kernels/reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/dtypes.h"

namespace unisono::kernels {
namespace {

// Narrow floats are computed in f32 and converted by the library's scalar conversions.
template <typename T>
struct Codec;

template <typename T>
  requires std::is_integral_v<T>
struct Codec<T> {
  using Value = T;
  static T decode(std::uint64_t bits) { return static_cast<T>(bits); }
  static std::uint64_t encode(T value) { return static_cast<std::make_unsigned_t<T>>(value); }
};
template <>
struct Codec<float> {
  using Value = float;
  static float decode(std::uint64_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }
  static std::uint64_t encode(float value) { return std::bit_cast<std::uint32_t>(value); }
};
template <>
struct Codec<double> {
  using Value = double;
  static double decode(std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static std::uint64_t encode(double value) { return std::bit_cast<std::uint64_t>(value); }
};
template <typename T>
  requires std::is_class_v<T>
struct Codec<T> {
  using Value = float;
  static float decode(std::uint64_t bits) {
    return to_float(T{static_cast<decltype(T::bits)>(bits)});
  }
  static std::uint64_t encode(float value) { return narrowed<T>(value).bits; }
};

template <typename T>
std::optional<T> combine_float(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::isnan(a) ? a : std::isnan(b) || b < a ? b : a;
    case ReduceOp::max:
      return std::isnan(a) ? a : std::isnan(b) || b > a ? b : a;
    default:
      return std::nullopt;
  }
}

template <typename T>
std::optional<T> combine_integer(ReduceOp op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return static_cast<T>(x + y);
    case ReduceOp::prod:
      return static_cast<T>(x * y);
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
    case ReduceOp::band:
      return static_cast<T>(x & y);
    case ReduceOp::bor:
      return static_cast<T>(x | y);
    case ReduceOp::bxor:
      return static_cast<T>(x ^ y);
    case ReduceOp::land:
      return static_cast<T>(a != 0 && b != 0);
    case ReduceOp::lor:
      return static_cast<T>(a != 0 || b != 0);
    case ReduceOp::lxor:
      return static_cast<T>((a != 0) != (b != 0));
    case ReduceOp::user:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::uint8_t> combine_boolean(ReduceOp op, std::uint8_t a, std::uint8_t b) {
  const bool x = a != 0;
  const bool y = b != 0;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::lor:
    case ReduceOp::bor:
      return x || y;
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::land:
    case ReduceOp::band:
      return x && y;
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      return x != y;
    default:
      return std::nullopt;
  }
}

template <typename T, bool kBoolean = false>
std::optional<std::uint64_t> reduce(ReduceOp op, const std::vector<std::uint64_t>& operands) {
  auto result = Codec<T>::decode(operands.at(0));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto next = Codec<T>::decode(operands[i]);
    std::optional<typename Codec<T>::Value> combined;
    if constexpr (kBoolean) {
      combined = combine_boolean(op, result, next);
    } else if constexpr (std::is_integral_v<T>) {
      combined = combine_integer(op, result, next);
    } else {
      combined = combine_float(op, result, next);
    }
    if (!combined) {
      return std::nullopt;
    }
    result = *combined;
  }
  return operands.size() == 1 ? operands[0] : Codec<T>::encode(result);
}

}  // namespace

std::optional<std::uint64_t> reference(Dtype dtype, ReduceOp op,
                                       const std::vector<std::uint64_t>& operands) {
  return with_dtype(dtype, [&](auto type) -> std::optional<std::uint64_t> {
    constexpr bool kBoolean = type.value == Dtype::boolean;
    using T = std::conditional_t<kBoolean, std::uint8_t, TypeOf<type.value>>;
    return reduce<T, kBoolean>(op, operands);
  });
}

bool is_nan(Dtype dtype, std::uint64_t bits) {
  return with_dtype(dtype, [bits](auto type) {
    if constexpr (is_float(type.value)) {
      return std::isnan(Codec<TypeOf<type.value>>::decode(bits));
    }
    return false;
  });
}

std::uint64_t hard_value(Dtype dtype, std::uint64_t random) {
  const std::size_t bits = 8 * size_of(dtype);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t kind = random % 16;
  const std::uint64_t any = random >> 4;
  if (dtype == Dtype::boolean) {
    return any % 2;
  }
  const DtypeTraits& shape = traits_of(dtype);
  if (shape.kind != DtypeKind::floating) {
    const std::array<std::uint64_t, 4> limits = {0, mask, mask >> 1, (mask >> 1) + 1};
    return kind < 4 ? limits[any % 4] : kind < 8 ? any % 3 : (random * 0x9e3779b97f4a7c15U) & mask;
  }
  const std::uint64_t sign = (any & 1U) << (bits - 1);
  const std::uint64_t infinity = ((std::uint64_t{1} << shape.exponent_bits) - 1)
                                 << shape.mantissa_bits;
  const std::uint64_t fraction =
      (random * 0x9e3779b97f4a7c15U >> 8) & ((std::uint64_t{1} << shape.mantissa_bits) - 1);
  // Special values are rare, otherwise every sum of many values would be NaN.
  switch (any / 2 % 64) {
    case 0:
      return sign | infinity;
    case 1:
      return sign | infinity | fraction | 1U;
    case 2:
      return sign | (infinity - 1 - any / 128 % 2);
    default:
      break;
  }
  if (kind == 0) {
    return sign;  // zero
  }
  if (kind < 4) {
    return sign | fraction;  // subnormal
  }
  // Exponents are close together, so that rounding and ties occur.
  const std::uint64_t bias = (std::uint64_t{1} << (shape.exponent_bits - 1)) - 1;
  const std::uint64_t exponent = bias - 3 + any / 128 % 7;
  return sign | exponent << shape.mantissa_bits | fraction;
}

}  // namespace unisono::kernels
