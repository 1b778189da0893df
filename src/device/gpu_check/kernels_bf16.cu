#include "device/kernels.cuh"
#include "gpu_check/dispatch.h"
namespace unisono::device {
const void* kernel_bf16(ReduceOp op) {
  const void* found = nullptr;
  dispatch_op<Dtype::bf16>(op, [&](auto d, auto o) {
    found = reinterpret_cast<const void*>(&run_kernel<decltype(d)::value, decltype(o)::value>);
  });
  return found;
}
}  // namespace unisono::device
