#include "device/kernels.cuh"
#include "gpu_check/dispatch.h"
namespace unisono::device {
const void* kernel_u8(ReduceOp op) {
  const void* found = nullptr;
  dispatch_op<Dtype::u8>(op, [&](auto d, auto o) {
    found = reinterpret_cast<const void*>(&run_kernel<decltype(d)::value, decltype(o)::value>);
  });
  return found;
}
}  // namespace unisono::device
