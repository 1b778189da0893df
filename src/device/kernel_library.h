// Kernels compiled by nvcc, in a separate library, libunisono_cuda.so.0, which is opened when the
// first group needs it.
#pragma once

#include "unisono/types.hpp"

namespace unisono::device {

// Returns the module of a data type, for cuModuleLoadData. bool uses the module of u8. Errors:
// config.
const void* kernel_module(Dtype dtype);

inline constexpr const char* kKernelName = "unisono_kernel";

}  // namespace unisono::device
