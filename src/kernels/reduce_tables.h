// The reductions of each group of dtypes, compiled apart so that each compiles in seconds. Each
// returns the function for the best SIMD target of this CPU itself, so that a call costs no
// further dispatch; nullptr where the pair is not supported.
#pragma once

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

ReduceFunction find_reduce_bytes(ReduceOp op, bool is_signed);
ReduceFunction find_reduce_words(ReduceOp op, bool is_signed);
ReduceFunction find_reduce_quads(ReduceOp op, bool is_signed);
ReduceFunction find_reduce_f16(ReduceOp op);
ReduceFunction find_reduce_bf16(ReduceOp op);
ReduceFunction find_reduce_f8e4m3(ReduceOp op);
ReduceFunction find_reduce_f8e5m2(ReduceOp op);
ReduceFunction find_reduce_f32(ReduceOp op);
ReduceFunction find_reduce_f64(ReduceOp op);

}  // namespace unisono::kernels
