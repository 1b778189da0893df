#include "device/cuda_driver.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

}  // namespace

CudaDriver load_cuda_driver(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw Error(
        ErrorCode::config,
        name + " cannot be opened: " + (why == nullptr ? "" : why) +
            "\ncollectives on device memory need NVIDIA's driver; set UNISONO_CUDA to its file");
  }
  const auto find = [&](auto& function, const char* symbol) {
    void* const found = ::dlsym(library, symbol);
    if (found == nullptr) {
      throw Error(ErrorCode::config,
                  name + " has no " + symbol + "\ninstall a driver for CUDA 12 or later");
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  CudaDriver driver;
  find(driver.cuInit, "cuInit");
  find(driver.cuDeviceGet, "cuDeviceGet");
  find(driver.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  find(driver.cuDeviceGetUuid_v2, "cuDeviceGetUuid_v2");
  find(driver.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(driver.cuCtxGetCurrent, "cuCtxGetCurrent");
  find(driver.cuCtxSetCurrent, "cuCtxSetCurrent");
  find(driver.cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2");
  find(driver.cuModuleLoadData, "cuModuleLoadData");
  find(driver.cuModuleUnload, "cuModuleUnload");
  find(driver.cuModuleGetFunction, "cuModuleGetFunction");
  find(driver.cuFuncGetAttribute, "cuFuncGetAttribute");
  find(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor,
       "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(driver.cuMemAlloc_v2, "cuMemAlloc_v2");
  find(driver.cuMemFree_v2, "cuMemFree_v2");
  find(driver.cuMemHostAlloc, "cuMemHostAlloc");
  find(driver.cuMemFreeHost, "cuMemFreeHost");
  find(driver.cuMemsetD8Async, "cuMemsetD8Async");
  find(driver.cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2");
  find(driver.cuIpcGetMemHandle, "cuIpcGetMemHandle");
  find(driver.cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle_v2");
  find(driver.cuIpcCloseMemHandle, "cuIpcCloseMemHandle");
  find(driver.cuStreamCreate, "cuStreamCreate");
  find(driver.cuStreamDestroy_v2, "cuStreamDestroy_v2");
  find(driver.cuStreamQuery, "cuStreamQuery");
  find(driver.cuStreamSynchronize, "cuStreamSynchronize");
  find(driver.cuStreamWaitEvent, "cuStreamWaitEvent");
  find(driver.cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo");
  find(driver.cuStreamGetId, "cuStreamGetId");
  find(driver.cuStreamGetCtx, "cuStreamGetCtx");
  find(driver.cuEventCreate, "cuEventCreate");
  find(driver.cuEventRecord, "cuEventRecord");
  find(driver.cuEventQuery, "cuEventQuery");
  find(driver.cuEventDestroy_v2, "cuEventDestroy_v2");
  find(driver.cuLaunchKernel, "cuLaunchKernel");
  find(driver.cuPointerGetAttributes, "cuPointerGetAttributes");
  find(driver.cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  find(driver.cuGetErrorName, "cuGetErrorName");
  find(driver.cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess");
  driver.kernels =
      reinterpret_cast<decltype(driver.kernels)>(::dlsym(library, "unisono_cuda_kernels"));
  const int error = driver.cuInit(0);
  if (error != 0) {
    const char* why = nullptr;
    driver.cuGetErrorName(error, &why);
    throw Error(ErrorCode::config, std::string("CUDA's driver does not start: ") +
                                       (why == nullptr ? std::to_string(error) : why) +
                                       "\ncheck that nvidia-smi lists a device");
  }
  return driver;
}

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = load_cuda_driver(read_env("UNISONO_CUDA").value_or(kLibrary));
  return driver;
}

void WhileOthersCapture::exchange() noexcept {
  try {
    cuda_driver().cuThreadExchangeStreamCaptureMode(&mode_);
  } catch (const Error&) {
    // Without a driver no stream captures.
  }
}

void check_cuda(int error, const char* call) {
  if (error == 0) {
    return;
  }
  const char* name = nullptr;
  cuda_driver().cuGetErrorName(error, &name);
  throw Error(error == cuda::kOutOfMemory ? ErrorCode::resource : ErrorCode::internal,
              std::string(call) + " failed: " + (name == nullptr ? std::to_string(error) : name) +
                  "\n" +
                  (error == cuda::kOutOfMemory ? "free device memory, or ask for less"
                                               : "check the device's log (dmesg, nvidia-smi -q)"));
}

}  // namespace unisono::device
