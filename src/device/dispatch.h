// Maps runtime values to types, for all pairs of data type and operation that have a kernel.
#pragma once

#include <type_traits>

#include "base/dtypes.h"
#include "device/image.h"

namespace unisono::device {

template <Dtype kDtype, class Function>
UNISONO_DEVICE void dispatch_op(ReduceOp op, Function function) {
  constexpr bool kInteger = is_integer(kDtype);
  const auto call = [&](auto o) { function(std::integral_constant<Dtype, kDtype>(), o); };
  switch (op) {
    case ReduceOp::sum:
      return call(std::integral_constant<ReduceOp, ReduceOp::sum>());
    case ReduceOp::prod:
      return call(std::integral_constant<ReduceOp, ReduceOp::prod>());
    case ReduceOp::min:
      return call(std::integral_constant<ReduceOp, ReduceOp::min>());
    case ReduceOp::max:
      return call(std::integral_constant<ReduceOp, ReduceOp::max>());
    case ReduceOp::avg:
      return call(std::integral_constant<ReduceOp, ReduceOp::avg>());
    default:
      break;
  }
  if constexpr (kInteger) {
    switch (op) {
      case ReduceOp::band:
        return call(std::integral_constant<ReduceOp, ReduceOp::band>());
      case ReduceOp::bor:
        return call(std::integral_constant<ReduceOp, ReduceOp::bor>());
      case ReduceOp::bxor:
        return call(std::integral_constant<ReduceOp, ReduceOp::bxor>());
      case ReduceOp::land:
        return call(std::integral_constant<ReduceOp, ReduceOp::land>());
      case ReduceOp::lor:
        return call(std::integral_constant<ReduceOp, ReduceOp::lor>());
      case ReduceOp::lxor:
        return call(std::integral_constant<ReduceOp, ReduceOp::lxor>());
      default:
        break;
    }
  } else if (op == ReduceOp::premul_sum) {
    return call(std::integral_constant<ReduceOp, ReduceOp::premul_sum>());
  }
}

template <class Function>
void dispatch(Dtype dtype, ReduceOp op, Function function) {
  with_dtype(dtype, [&](auto type) {
    if constexpr (type.value != Dtype::boolean) {
      dispatch_op<type.value>(op, function);
    }
  });
}

}  // namespace unisono::device
