// Kernels for one data type, UNISONO_DTYPE, and all its operations.
#include <cuda_runtime.h>

#include "device/block.h"
#include "device/dispatch.h"

namespace unisono::device {
namespace {

constexpr std::uint32_t kLooksBetweenWords = 1024;

__device__ std::uint32_t read_word(const std::uint32_t* word) {
  return *const_cast<const volatile std::uint32_t*>(word);
}
__device__ void write_word(std::uint32_t* word, std::uint32_t value) {
  *const_cast<volatile std::uint32_t*>(word) = value;
}

class GpuBlock {
 public:
  __device__ explicit GpuBlock(BlockMemory& shared) : shared_(shared) {}
  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ std::uint32_t threads() const { return blockDim.x; }
  __device__ std::uint32_t block() const { return blockIdx.x; }
  __device__ BlockMemory& shared() { return shared_; }
  __device__ void sync() { __syncthreads(); }
  __device__ bool any(bool flag) { return __syncthreads_or(flag) != 0; }
  __device__ void signal(std::uint64_t* word, std::uint64_t value) {
    asm volatile("fence.acq_rel.sys; st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value)
                 : "memory");
  }
  __device__ void tell(std::uint32_t* word, std::uint32_t value) { write_word(word, value); }
  __device__ bool reaches(const std::uint64_t* word, std::uint64_t value, const Launch& launch,
                          std::uint32_t rank) {
    std::uint32_t* late = &launch.status[blockIdx.x].late;
    std::uint64_t now;
    for (std::uint32_t looks = 1;; ++looks) {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(now) : "l"(word) : "memory");
      if (now >= value) {
        if (looks >= kLooksBetweenWords) {
          write_word(late, 0);
        }
        return true;
      }
      if (looks % kLooksBetweenWords == 0) {
        if (read_word(launch.stop) != 0) {
          return false;
        }
        write_word(late, late_word(rank, value));
      }
    }
  }

 private:
  BlockMemory& shared_;
};

}  // namespace
}  // namespace unisono::device

extern "C" __global__ void __launch_bounds__(unisono::device::kThreads)
    unisono_kernel(const __grid_constant__ unisono::device::Launch launch) {
  using namespace unisono::device;
  __shared__ BlockMemory shared;
  GpuBlock block(shared);
  dispatch_op<unisono::Dtype::UNISONO_DTYPE>(
      static_cast<unisono::ReduceOp>(launch.op), [&](auto dtype, auto op) {
        run_block<Combiner<decltype(dtype)::value, decltype(op)::value>>(block, launch);
      });
}
