// The kernels of all data types, loaded on a device.
#pragma once

#include <array>

#include "device/context.h"
#include "unisono/types.hpp"

namespace unisono::device {

class Kernels {
 public:
  // Loads all: loading waits for kernels that run, and later those may wait for this rank.
  explicit Kernels(const Context& context);
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  ~Kernels();

  void* of(Dtype dtype) const { return functions_[static_cast<std::size_t>(dtype)]; }
  // How many blocks of any of them a multiprocessor has room for.
  int blocks_per_processor() const noexcept { return blocks_; }

 private:
  void unload() noexcept;

  const Context& context_;
  std::array<void*, kDtypeCount> modules_ = {};
  std::array<void*, kDtypeCount> functions_ = {};
  int blocks_ = 0;
};

// Whether a kernel does `op` on `dtype`.
bool has_kernel(Dtype dtype, ReduceOp op);
// What a kernel is to do for it: on bool, which is a byte of 0 or 1, every operation is a logical
// one.
ReduceOp kernel_op(Dtype dtype, ReduceOp op);

}  // namespace unisono::device
