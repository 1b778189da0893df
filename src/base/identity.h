// Identity elements of the reduce operations.
#pragma once

#include <limits>
#include <type_traits>

#include "base/dtypes.h"

namespace unisono {

// Returns the identity element. REQUIRES: the operation is defined for the type, and is neither avg
// nor user.
template <Dtype kDtype>
constexpr TypeOf<kDtype> identity_of(ReduceOp op) {
  using T = TypeOf<kDtype>;
  const bool is_least = op == ReduceOp::max;
  const bool is_one = op == ReduceOp::prod || op == ReduceOp::land;
  if constexpr (std::is_integral_v<T>) {  // includes bool
    return op == ReduceOp::min    ? std::numeric_limits<T>::max()
           : is_least             ? std::numeric_limits<T>::min()
           : is_one               ? T{1}
           : op == ReduceOp::band ? static_cast<T>(-1)
                                  : T{0};
  } else {
    // 448 is the greatest f8e4m3, which has no infinity.
    constexpr float kMost =
        traits_of(kDtype).has_infinity ? std::numeric_limits<float>::infinity() : 448.0F;
    const float value = op == ReduceOp::min ? kMost : is_least ? -kMost : is_one ? 1.0F : 0.0F;
    if constexpr (std::is_floating_point_v<T>) {
      return value;
    } else {
      return narrowed<T>(value);
    }
  }
}

}  // namespace unisono
