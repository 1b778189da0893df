// The kernels as nvcc made them. They lie in a library of their own, libunisono_cuda.so.0, which is
// opened when the first group asks for it.
#pragma once

#include "unisono/types.hpp"

namespace unisono::device {

// The module of a data type, for cuModuleLoadData. bool has that of u8. Errors: config.
const void* kernel_module(Dtype dtype);

inline constexpr const char* kKernelName = "unisono_kernel";

}  // namespace unisono::device
