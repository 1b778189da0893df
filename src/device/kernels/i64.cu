#include "device/kernels.cuh"

extern "C" __global__ void __launch_bounds__(unisono::device::kThreads)
    unisono_i64(const unisono::device::Launch launch) {
  unisono::device::run_all<unisono::Dtype::i64>(launch);
}
