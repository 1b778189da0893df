#include "device/cuda_driver.h"

#include <dlfcn.h>

#include <string>

#include "unisono/error.hpp"

namespace unisono::device {
namespace {

class Loader {
 public:
  explicit Loader(void* library) : library_(library) {}
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr) {
      throw Error(ErrorCode::config, std::string("libcuda.so.1 has no ") + name +
                                         "\ninstall a driver for CUDA 12 or later");
    }
  }

 private:
  void* library_;
};

CudaDriver load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw Error(ErrorCode::config, std::string("libcuda.so.1 cannot be opened: ") +
                                       (why == nullptr ? "" : why) +
                                       "\ncollectives on device memory need NVIDIA's driver");
  }
  CudaDriver driver;
  Loader loader(library);
  loader.find(driver.cuInit, "cuInit");
  loader.find(driver.cuDeviceGet, "cuDeviceGet");
  loader.find(driver.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  loader.find(driver.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  loader.find(driver.cuCtxGetCurrent, "cuCtxGetCurrent");
  loader.find(driver.cuCtxSetCurrent, "cuCtxSetCurrent");
  loader.find(driver.cuModuleLoadData, "cuModuleLoadData");
  loader.find(driver.cuModuleGetFunction, "cuModuleGetFunction");
  loader.find(driver.cuFuncGetAttribute, "cuFuncGetAttribute");
  loader.find(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor,
              "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  loader.find(driver.cuMemAlloc_v2, "cuMemAlloc_v2");
  loader.find(driver.cuMemFree_v2, "cuMemFree_v2");
  loader.find(driver.cuMemHostAlloc, "cuMemHostAlloc");
  loader.find(driver.cuMemFreeHost, "cuMemFreeHost");
  loader.find(driver.cuMemsetD8Async, "cuMemsetD8Async");
  loader.find(driver.cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2");
  loader.find(driver.cuIpcGetMemHandle, "cuIpcGetMemHandle");
  loader.find(driver.cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle_v2");
  loader.find(driver.cuIpcCloseMemHandle, "cuIpcCloseMemHandle");
  loader.find(driver.cuStreamCreate, "cuStreamCreate");
  loader.find(driver.cuStreamDestroy_v2, "cuStreamDestroy_v2");
  loader.find(driver.cuStreamQuery, "cuStreamQuery");
  loader.find(driver.cuStreamSynchronize, "cuStreamSynchronize");
  loader.find(driver.cuStreamWaitEvent, "cuStreamWaitEvent");
  loader.find(driver.cuStreamIsCapturing, "cuStreamIsCapturing");
  loader.find(driver.cuEventCreate, "cuEventCreate");
  loader.find(driver.cuEventRecord, "cuEventRecord");
  loader.find(driver.cuEventDestroy_v2, "cuEventDestroy_v2");
  loader.find(driver.cuLaunchKernel, "cuLaunchKernel");
  loader.find(driver.cuPointerGetAttribute, "cuPointerGetAttribute");
  loader.find(driver.cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  loader.find(driver.cuGetErrorName, "cuGetErrorName");
  loader.find(driver.cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess");
  const int error = driver.cuInit(0);
  if (error != 0) {
    const char* name = nullptr;
    driver.cuGetErrorName(error, &name);
    throw Error(ErrorCode::config, std::string("CUDA's driver does not start: ") +
                                       (name == nullptr ? "unknown" : name) +
                                       "\nsee whether nvidia-smi lists a device");
  }
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = load();
  return driver;
}

void check_cuda(int error, const char* call) {
  if (error == 0) {
    return;
  }
  const char* name = nullptr;
  cuda_driver().cuGetErrorName(error, &name);
  constexpr int kOutOfMemory = 2;
  throw Error(error == kOutOfMemory ? ErrorCode::resource : ErrorCode::internal,
              std::string(call) + " failed: " + (name == nullptr ? "unknown" : name));
}

}  // namespace unisono::device
