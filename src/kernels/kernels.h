// Copy, reduce and scale: SIMD behind one run-time dispatch (Highway), as plain function pointers.
#pragma once

#include <cstddef>

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

inline constexpr int kMaxSources = 64;

// nullptr: the pair is not supported (bitwise ops on floats, `user`, ...).
ReduceFunction find_reduce(Dtype dtype, ReduceOp op);

ScaleFunction find_multiply(Dtype dtype);
ScaleFunction find_divide(Dtype dtype);

void copy(void* target, const void* source, std::size_t bytes, Store store) noexcept;
void fence_streaming() noexcept;

// "AVX3_ZEN4", ...: what the dispatch chose on this CPU.
const char* target_name();

}  // namespace unisono::kernels
