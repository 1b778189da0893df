// Reductions of each data type, in separate files so that each compiles in seconds. Each function
// returns the kernel for the best SIMD target of this CPU, so that calls need no further dispatch;
// nullptr if the operation is not supported.
#pragma once

#include <algorithm>
#include <array>

#include "base/dtypes.h"
#include "kernels/functions.h"

namespace unisono::kernels {

ReduceFunction find_reduce_i8(ReduceOp op);
ReduceFunction find_reduce_u8(ReduceOp op);
ReduceFunction find_reduce_i32(ReduceOp op);
ReduceFunction find_reduce_u32(ReduceOp op);
ReduceFunction find_reduce_i64(ReduceOp op);
ReduceFunction find_reduce_u64(ReduceOp op);
ReduceFunction find_reduce_f16(ReduceOp op);
ReduceFunction find_reduce_bf16(ReduceOp op);
ReduceFunction find_reduce_f8e4m3(ReduceOp op);
ReduceFunction find_reduce_f8e5m2(ReduceOp op);
ReduceFunction find_reduce_f32(ReduceOp op);
ReduceFunction find_reduce_f64(ReduceOp op);
ReduceFunction find_reduce_bool(ReduceOp op);
ScaledSumFunction find_scaled_sum_f32();
ScaledSumFunction find_scaled_sum_f64();

struct Reductions {
  Dtype dtype;
  ReduceFunction (*find)(ReduceOp);
};
// In the order of Dtype.
inline constexpr std::array<Reductions, kDtypeCount> kReductions = {{
    {Dtype::i8, find_reduce_i8},
    {Dtype::u8, find_reduce_u8},
    {Dtype::i32, find_reduce_i32},
    {Dtype::u32, find_reduce_u32},
    {Dtype::i64, find_reduce_i64},
    {Dtype::u64, find_reduce_u64},
    {Dtype::f16, find_reduce_f16},
    {Dtype::bf16, find_reduce_bf16},
    {Dtype::f8e4m3, find_reduce_f8e4m3},
    {Dtype::f8e5m2, find_reduce_f8e5m2},
    {Dtype::f32, find_reduce_f32},
    {Dtype::f64, find_reduce_f64},
    {Dtype::boolean, find_reduce_bool},
}};
static_assert(std::ranges::all_of(kReductions, [](const Reductions& one) {
  return &one == &kReductions.at(static_cast<std::size_t>(one.dtype)) && one.find != nullptr;
}));

}  // namespace unisono::kernels
