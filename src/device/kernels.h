// The kernels of all data types, loaded on a device.
#pragma once

#include <array>

#include "device/context.h"
#include "unisono/types.hpp"

namespace unisono::device {

class Kernels {
 public:
  // Loads all kernels now: loading waits for running kernels, which could later be waiting for this
  // rank.
  explicit Kernels(const Context& context);
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  ~Kernels();

  void* of(Dtype dtype) const { return functions_[static_cast<std::size_t>(dtype)]; }
  // Returns the number of blocks of any kernel that fit on a multiprocessor.
  int blocks_per_processor() const noexcept { return blocks_; }

 private:
  void unload() noexcept;

  const Context& context_;
  std::array<void*, kDtypeCount> modules_ = {};
  std::array<void*, kDtypeCount> functions_ = {};
  int blocks_ = 0;
};

// Returns true if there is a kernel for `op` on `dtype`.
bool has_kernel(Dtype dtype, ReduceOp op);
// Returns the kernel's operation: on bool, a byte of 0 or 1, every operation is logical.
ReduceOp kernel_op(Dtype dtype, ReduceOp op);

}  // namespace unisono::device
