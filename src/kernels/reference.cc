// The scalar reference of the reductions, see reference.h.
#include "kernels/reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace unisono::kernels {
namespace {

// The narrow floats are computed in f32 and converted by the library's scalar conversions.
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
template <typename T, T (*kNarrow)(float)>
struct NarrowCodec {
  using Value = float;
  static float decode(std::uint64_t bits) {
    return to_float(T{static_cast<decltype(T::bits)>(bits)});
  }
  static std::uint64_t encode(float value) { return kNarrow(value).bits; }
};
template <>
struct Codec<f16> : NarrowCodec<f16, to_f16> {};
template <>
struct Codec<bf16> : NarrowCodec<bf16, to_bf16> {};
template <>
struct Codec<f8e4m3> : NarrowCodec<f8e4m3, to_f8e4m3> {};
template <>
struct Codec<f8e5m2> : NarrowCodec<f8e5m2, to_f8e5m2> {};

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

struct FloatShape {
  int exponent_bits;
  int mantissa_bits;
};
std::optional<FloatShape> float_shape(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return FloatShape{5, 10};
    case Dtype::bf16:
      return FloatShape{8, 7};
    case Dtype::f8e4m3:
      return FloatShape{4, 3};
    case Dtype::f8e5m2:
      return FloatShape{5, 2};
    case Dtype::f32:
      return FloatShape{8, 23};
    case Dtype::f64:
      return FloatShape{11, 52};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::uint64_t> reference(Dtype dtype, ReduceOp op,
                                       const std::vector<std::uint64_t>& operands) {
  switch (dtype) {
    case Dtype::i8:
      return reduce<std::int8_t>(op, operands);
    case Dtype::u8:
      return reduce<std::uint8_t>(op, operands);
    case Dtype::i32:
      return reduce<std::int32_t>(op, operands);
    case Dtype::u32:
      return reduce<std::uint32_t>(op, operands);
    case Dtype::i64:
      return reduce<std::int64_t>(op, operands);
    case Dtype::u64:
      return reduce<std::uint64_t>(op, operands);
    case Dtype::f16:
      return reduce<f16>(op, operands);
    case Dtype::bf16:
      return reduce<bf16>(op, operands);
    case Dtype::f8e4m3:
      return reduce<f8e4m3>(op, operands);
    case Dtype::f8e5m2:
      return reduce<f8e5m2>(op, operands);
    case Dtype::f32:
      return reduce<float>(op, operands);
    case Dtype::f64:
      return reduce<double>(op, operands);
    case Dtype::boolean:
      return reduce<std::uint8_t, true>(op, operands);
  }
  return std::nullopt;
}

bool is_nan(Dtype dtype, std::uint64_t bits) {
  switch (dtype) {
    case Dtype::f16:
      return std::isnan(Codec<f16>::decode(bits));
    case Dtype::bf16:
      return std::isnan(Codec<bf16>::decode(bits));
    case Dtype::f8e4m3:
      return std::isnan(Codec<f8e4m3>::decode(bits));
    case Dtype::f8e5m2:
      return std::isnan(Codec<f8e5m2>::decode(bits));
    case Dtype::f32:
      return std::isnan(Codec<float>::decode(bits));
    case Dtype::f64:
      return std::isnan(Codec<double>::decode(bits));
    default:
      return false;
  }
}

std::uint64_t hard_value(Dtype dtype, std::uint64_t random) {
  const std::size_t bits = 8 * size_of(dtype);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t kind = random % 16;
  const std::uint64_t any = random >> 4;
  if (dtype == Dtype::boolean) {
    return any % 2;
  }
  const auto shape = float_shape(dtype);
  if (!shape) {
    const std::array<std::uint64_t, 4> limits = {0, mask, mask >> 1, (mask >> 1) + 1};
    return kind < 4 ? limits[any % 4] : kind < 8 ? any % 3 : (random * 0x9e3779b97f4a7c15U) & mask;
  }
  const std::uint64_t sign = (any & 1U) << (bits - 1);
  const std::uint64_t infinity = ((std::uint64_t{1} << shape->exponent_bits) - 1)
                                 << shape->mantissa_bits;
  const std::uint64_t fraction =
      (random * 0x9e3779b97f4a7c15U >> 8) & ((std::uint64_t{1} << shape->mantissa_bits) - 1);
  // Rare, or else every sum of many would be NaN.
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
    return sign;  // a zero
  }
  if (kind < 4) {
    return sign | fraction;  // subnormal
  }
  // Exponents near each other, so that roundings and ties happen.
  const std::uint64_t bias = (std::uint64_t{1} << (shape->exponent_bits - 1)) - 1;
  const std::uint64_t exponent = bias - 3 + any / 128 % 7;
  return sign | exponent << shape->mantissa_bits | fraction;
}

}  // namespace unisono::kernels
