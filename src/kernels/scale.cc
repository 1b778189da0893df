// Multiplies and divides integers by one number, and finds the functions for all dtypes.
//
// With a whole factor or divisor, integer arithmetic is used: exact up to 64 bits, and products
// wrap. With a fraction, f64 arithmetic is used: results truncate towards zero and saturate; NaN
// gives 0.
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dtypes.h"
#include "base/private.h"
#include "kernels/kernels.h"
#include "kernels/scale_tables.h"

namespace unisono::kernels {
namespace {

template <typename T>
T saturate(double value) {
  // One more than the greatest T, which unlike the greatest T is exact in f64.
  constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  if (std::isnan(value)) {
    return 0;
  }
  if (value >= kEnd) {
    return std::numeric_limits<T>::max();
  }
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

// Returns true if `value` is an integer that fits into T.
template <typename T>
bool fits(double value) {
  return std::trunc(value) == value && static_cast<double>(saturate<T>(value)) == value &&
         value < 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
}

// Applies `function` to each element. Uses memcpy because neither side needs to be aligned.
template <typename To, typename From, class Function>
void convert(void* target, const void* source, std::size_t count, Function function) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To result = function(value);
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

template <typename T, class Function>
void for_each(void* target, const void* source, std::size_t count, Function function) {
  convert<T, T>(target, source, count, function);
}

template <typename T>
void multiply(void* target, const void* source, std::size_t count, double factor) {
  using U = std::make_unsigned_t<T>;
  if (fits<T>(factor)) {
    // Uses 64 bits, because a product of promoted small types could overflow int.
    const auto by = static_cast<std::uint64_t>(static_cast<T>(factor));
    for_each<U>(target, source, count,
                [by](U value) { return static_cast<U>(static_cast<std::uint64_t>(value) * by); });
  } else {
    for_each<T>(target, source, count,
                [factor](T value) { return saturate<T>(static_cast<double>(value) * factor); });
  }
}

template <typename T>
void divide(void* target, const void* source, std::size_t count, double divisor) {
  assert(divisor != 0);
  if (std::is_signed_v<T> && divisor == -1) {
    return multiply<T>(target, source, count, divisor);  // multiplying by -1 lets the least T wrap
  }
  // For 32-bit integers, f64 never rounds a quotient up to the next integer.
  if (sizeof(T) < 8 || !fits<T>(divisor)) {
    for_each<T>(target, source, count,
                [divisor](T value) { return saturate<T>(static_cast<double>(value) / divisor); });
  } else {
    const T by = static_cast<T>(divisor);
    for_each<T>(target, source, count, [by](T value) { return static_cast<T>(value / by); });
  }
}

template <typename Narrow, typename Wide>
void widen(void* target, const void* source, std::size_t count, double /*factor*/) {
  convert<Wide, Narrow>(target, source, count, [](Narrow value) { return Wide{value}; });
}

// A sum of 2^20 32-bit numbers is exact in f64. A quotient that is not an integer is at least 2^-20
// away from the next integer, and f64 rounds by at most 2^-22.
template <typename Narrow, typename Wide>
void average(void* target, const void* source, std::size_t count, double ranks) {
  convert<Narrow, Wide>(target, source, count, [ranks](Wide sum) {
    return static_cast<Narrow>(static_cast<double>(sum) / ranks);
  });
}

}  // namespace

UNISONO_PRIVATE ScaleFunction find_multiply(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    if constexpr (is_integer(type.value)) {
      return multiply<TypeOf<type.value>>;
    }
    return find_multiply_float(type);
  });
}

UNISONO_PRIVATE ScaleFunction find_divide(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    if constexpr (is_integer(type.value)) {
      return divide<TypeOf<type.value>>;
    }
    return find_divide_float(type);
  });
}

ScaleFunction find_widen(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    constexpr Dtype kSum = traits_of(type.value).sum;
    if constexpr (is_float(type.value)) {
      return find_widen_float(type.value);
    } else if constexpr (kSum != type.value) {
      return widen<TypeOf<type.value>, TypeOf<kSum>>;
    }
    return nullptr;
  });
}

ScaleFunction find_average(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    constexpr Dtype kSum = traits_of(type.value).sum;
    if constexpr (is_float(type.value)) {
      return find_average_float(type.value);
    } else if constexpr (kSum != type.value) {
      return average<TypeOf<type.value>, TypeOf<kSum>>;
    }
    return nullptr;
  });
}

}  // namespace unisono::kernels
