// From values to types: all pairs of data type and operation that have a kernel.
#pragma once

#include <type_traits>

#include "device/image.h"
#include "unisono/types.hpp"

namespace unisono::device {

template <Dtype kDtype, class Function>
UNISONO_DEVICE void dispatch_op(ReduceOp op, Function function) {
  constexpr bool kInteger = kDtype <= Dtype::u64;
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
  switch (dtype) {
    case Dtype::i8:
      return dispatch_op<Dtype::i8>(op, function);
    case Dtype::u8:
      return dispatch_op<Dtype::u8>(op, function);
    case Dtype::i32:
      return dispatch_op<Dtype::i32>(op, function);
    case Dtype::u32:
      return dispatch_op<Dtype::u32>(op, function);
    case Dtype::i64:
      return dispatch_op<Dtype::i64>(op, function);
    case Dtype::u64:
      return dispatch_op<Dtype::u64>(op, function);
    case Dtype::f16:
      return dispatch_op<Dtype::f16>(op, function);
    case Dtype::bf16:
      return dispatch_op<Dtype::bf16>(op, function);
    case Dtype::f8e4m3:
      return dispatch_op<Dtype::f8e4m3>(op, function);
    case Dtype::f8e5m2:
      return dispatch_op<Dtype::f8e5m2>(op, function);
    case Dtype::f32:
      return dispatch_op<Dtype::f32>(op, function);
    case Dtype::f64:
      return dispatch_op<Dtype::f64>(op, function);
    case Dtype::boolean:
      return;
  }
}

}  // namespace unisono::device
