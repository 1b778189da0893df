#include "device/kernels.cuh"

extern "C" __global__ void __launch_bounds__(unisono::device::kThreads)
    unisono_f64(const unisono::device::Launch launch) {
  unisono::device::run_all<unisono::Dtype::f64>(launch);
}
