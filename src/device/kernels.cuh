// The kernels, one for each data type and operation.
#pragma once

#include <cuda_runtime.h>

#include "device/block.h"
#include "device/dispatch.h"

namespace unisono::device {

inline constexpr int kThreads = 512;

class GpuBlock {
 public:
  __device__ explicit GpuBlock(Shared& shared) : shared_(shared) {}
  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ std::uint32_t threads() const { return blockDim.x; }
  __device__ std::uint32_t block() const { return blockIdx.x; }
  __device__ Shared& shared() { return shared_; }
  __device__ void sync() { __syncthreads(); }
  __device__ bool any(bool flag) { return __syncthreads_or(flag) != 0; }
  __device__ void signal(std::uint64_t* word, std::uint64_t value) {
    asm volatile("fence.acq_rel.sys; st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ bool reaches(const std::uint64_t* word, std::uint64_t value, const Launch& launch,
                          std::uint32_t rank) {
    std::uint64_t now;
    for (std::uint32_t looks = 1;; ++looks) {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(now) : "l"(word) : "memory");
      if (now >= value) {
        if (looks >= 1024) {
          *reinterpret_cast<volatile std::uint32_t*>(&launch.status[blockIdx.x].late) = 0;
        }
        return true;
      }
      if (looks % 1024 == 0) {
        if (*reinterpret_cast<const volatile std::uint32_t*>(launch.stop) != 0) {
          return false;
        }
        *reinterpret_cast<volatile std::uint32_t*>(&launch.status[blockIdx.x].late) = rank + 1;
      }
    }
  }

 private:
  Shared& shared_;
};

// All operations of a data type. Which one it is is the same for all threads.
template <Dtype kDtype>
__device__ void run_all(const Launch& launch) {
  __shared__ Shared shared;
  GpuBlock block(shared);
  dispatch_op<kDtype>(static_cast<ReduceOp>(launch.op), [&](auto, auto op) {
    run_block<Combiner<kDtype, decltype(op)::value>>(block, launch);
  });
}

}  // namespace unisono::device
