#include "device/kernels.cuh"

extern "C" __global__ void __launch_bounds__(unisono::device::kThreads)
    unisono_f8e5m2(const unisono::device::Launch launch) {
  unisono::device::run_all<unisono::Dtype::f8e5m2>(launch);
}
