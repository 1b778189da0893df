// The CUDA driver, opened when the first group needs it and never linked. UNISONO_CUDA can name
// another file than libcuda.so.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace unisono::device {

struct IpcHandle {
  char bytes[64] = {};
};

struct DeviceUuid {
  char bytes[16] = {};
  friend bool operator==(const DeviceUuid&, const DeviceUuid&) = default;
};

// The functions of libcuda.so.1 that unisono uses, under their original names. Each returns 0 or an
// error.
struct CudaDriver {
  int (*cuInit)(unsigned) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
  int (*cuDeviceGetUuid_v2)(DeviceUuid*, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*cuCtxGetCurrent)(void**) = nullptr;
  int (*cuCtxSetCurrent)(void*) = nullptr;
  int (*cuDevicePrimaryCtxRelease_v2)(int) = nullptr;
  int (*cuModuleLoadData)(void**, const void*) = nullptr;
  int (*cuModuleUnload)(void*) = nullptr;
  int (*cuModuleGetFunction)(void**, void*, const char*) = nullptr;
  int (*cuFuncGetAttribute)(int*, int, void*) = nullptr;
  int (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, void*, int, std::size_t) = nullptr;
  int (*cuMemAlloc_v2)(std::uint64_t*, std::size_t) = nullptr;
  int (*cuMemFree_v2)(std::uint64_t) = nullptr;
  int (*cuMemHostAlloc)(void**, std::size_t, unsigned) = nullptr;
  int (*cuMemFreeHost)(void*) = nullptr;
  int (*cuMemsetD8Async)(std::uint64_t, unsigned char, std::size_t, void*) = nullptr;
  int (*cuMemcpyHtoDAsync_v2)(std::uint64_t, const void*, std::size_t, void*) = nullptr;
  int (*cuIpcGetMemHandle)(IpcHandle*, std::uint64_t) = nullptr;
  int (*cuIpcOpenMemHandle_v2)(std::uint64_t*, IpcHandle, unsigned) = nullptr;
  int (*cuIpcCloseMemHandle)(std::uint64_t) = nullptr;
  int (*cuStreamCreate)(void**, unsigned) = nullptr;
  int (*cuStreamDestroy_v2)(void*) = nullptr;
  int (*cuStreamQuery)(void*) = nullptr;
  int (*cuStreamSynchronize)(void*) = nullptr;
  int (*cuStreamWaitEvent)(void*, void*, unsigned) = nullptr;
  int (*cuStreamGetCaptureInfo)(void*, int*, std::uint64_t*) = nullptr;
  int (*cuStreamGetId)(void*, std::uint64_t*) = nullptr;
  int (*cuStreamGetCtx)(void*, void**) = nullptr;
  int (*cuEventCreate)(void**, unsigned) = nullptr;
  int (*cuEventRecord)(void*, void*) = nullptr;
  int (*cuEventQuery)(void*) = nullptr;
  int (*cuEventDestroy_v2)(void*) = nullptr;
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void**, void**) = nullptr;
  int (*cuPointerGetAttributes)(unsigned, const int*, void**, std::uint64_t) = nullptr;
  int (*cuThreadExchangeStreamCaptureMode)(int*) = nullptr;
  int (*cuGetErrorName)(int, const char**) = nullptr;
  int (*cuCtxEnablePeerAccess)(void*, unsigned) = nullptr;
  // Set if the driver cannot run GPU kernels and provides its own (KernelLibrary); otherwise
  // nullptr.
  const void* (*kernels)(int dtype) = nullptr;
};

namespace cuda {

inline constexpr int kOutOfMemory = 2;
inline constexpr int kPeerAccessAlreadyEnabled = 704;
inline constexpr int kNotReady = 600;

}  // namespace cuda

// Opens a driver library. Errors: config.
CudaDriver load_cuda_driver(const std::string& file);
// Returns the process-wide driver. Errors: config, which names the missing part.
const CudaDriver& cuda_driver();

// Throws Error with the failed call's name, unless `error` is 0.
void check_cuda(int error, const char* call);

// During the object's lifetime, the thread may make calls that would otherwise fail and end another
// stream's capture: querying an event, waiting for a stream. Does nothing if there is no driver.
class WhileOthersCapture {
 public:
  WhileOthersCapture() noexcept { exchange(); }
  WhileOthersCapture(const WhileOthersCapture&) = delete;
  WhileOthersCapture& operator=(const WhileOthersCapture&) = delete;
  ~WhileOthersCapture() { exchange(); }

 private:
  void exchange() noexcept;

  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

}  // namespace unisono::device
