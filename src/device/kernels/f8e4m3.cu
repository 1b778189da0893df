#include "device/kernels.cuh"

extern "C" __global__ void __launch_bounds__(unisono::device::kThreads)
    unisono_f8e4m3(const unisono::device::Launch launch) {
  unisono::device::run_all<unisono::Dtype::f8e4m3>(launch);
}
