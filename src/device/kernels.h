// The kernels of all data types, loaded on a device.
#pragma once

#include <array>

#include "device/context.h"
#include "unisono/types.hpp"

namespace unisono::device {

class Kernels {
 public:
  // Loads all kernels now. Loading waits for running kernels, so later it could deadlock with
  // kernels that wait for this rank.
  explicit Kernels(const Context& context);
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  ~Kernels();

  void* of(Dtype dtype) const { return functions_[static_cast<std::size_t>(dtype)]; }
  // Returns the number of blocks that fit on a multiprocessor, whichever kernel they run.
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
// Returns the operation that the kernel uses. bool is a byte of 0 or 1, so its operations become
// logical ones.
ReduceOp kernel_op(Dtype dtype, ReduceOp op);

}  // namespace unisono::device
