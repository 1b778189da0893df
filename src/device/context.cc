#include "device/context.h"

#include <algorithm>
#include <string>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr int kMultiprocessorCount = 16;  // CU_DEVICE_ATTRIBUTE_...
constexpr unsigned kNonBlocking = 1;      // CU_STREAM_...
constexpr unsigned kLazyPeerAccess = 1;   // CU_IPC_MEM_...

}  // namespace

Context::Context(int device) : number_(device) {
  const CudaDriver& driver = cuda_driver();
  if (driver.cuDeviceGet(&device_, device) != 0) {
    throw Error(ErrorCode::config, "there is no device " + std::to_string(device) +
                                       "\ncheck nvidia-smi -L and CUDA_VISIBLE_DEVICES");
  }
  check_cuda(driver.cuDevicePrimaryCtxRetain(&handle_, device_), "cuDevicePrimaryCtxRetain");
  try {
    const InContext here(*this);
    check_cuda(driver.cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate");
  } catch (...) {
    release();
    throw;
  }
}

Context::~Context() {
  release();
}

void Context::release() noexcept {
  const CudaDriver& driver = cuda_driver();
  void* before = nullptr;
  driver.cuCtxGetCurrent(&before);
  driver.cuCtxSetCurrent(handle_);
  unmap();
  for (const std::uint64_t place : allocated_) {
    driver.cuMemFree_v2(place);
  }
  if (stream_ != nullptr) {
    driver.cuStreamDestroy_v2(stream_);
  }
  driver.cuCtxSetCurrent(before == handle_ ? nullptr : before);
  driver.cuDevicePrimaryCtxRelease_v2(device_);
  for (const int peer : peers_) {
    driver.cuDevicePrimaryCtxRelease_v2(peer);
  }
  if (before == handle_) {
    driver.cuCtxSetCurrent(before);  // still current for the caller
  }
}

void Context::unmap() noexcept {
  quietly_in(handle_, [this] {
    for (const std::uint64_t place : std::exchange(mapped_, {})) {
      cuda_driver().cuIpcCloseMemHandle(place);
    }
  });
}

DeviceUuid Context::uuid() const {
  DeviceUuid uuid;
  check_cuda(cuda_driver().cuDeviceGetUuid_v2(&uuid, device_), "cuDeviceGetUuid");
  return uuid;
}

int Context::processors() const {
  int result = 1;
  check_cuda(cuda_driver().cuDeviceGetAttribute(&result, kMultiprocessorCount, device_),
             "cuDeviceGetAttribute");
  return result;
}

std::uint64_t Context::allocate(std::size_t bytes) {
  const CudaDriver& driver = cuda_driver();
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  std::uint64_t place = 0;
  allocated_.reserve(allocated_.size() + 1);
  check_cuda(driver.cuMemAlloc_v2(&place, asked), "cuMemAlloc");
  allocated_.push_back(place);
  check_cuda(driver.cuMemsetD8Async(place, 0, asked, stream_), "cuMemsetD8Async");
  check_cuda(driver.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  return place;
}

std::uint64_t Context::map(const IpcHandle& memory) {
  std::uint64_t place = 0;
  mapped_.reserve(mapped_.size() + 1);
  check_cuda(cuda_driver().cuIpcOpenMemHandle_v2(&place, memory, kLazyPeerAccess),
             "cuIpcOpenMemHandle");
  mapped_.push_back(place);
  return place;
}

void Context::enable_peer(int device) {
  const CudaDriver& driver = cuda_driver();
  int handle = 0;
  void* context = nullptr;
  check_cuda(driver.cuDeviceGet(&handle, device), "cuDeviceGet");
  peers_.reserve(peers_.size() + 1);
  check_cuda(driver.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain");
  peers_.push_back(handle);
  const int error = driver.cuCtxEnablePeerAccess(context, 0);
  check_cuda(error == cuda::kPeerAccessAlreadyEnabled ? 0 : error, "cuCtxEnablePeerAccess");
}

void Context::upload(std::uint64_t to, const void* from, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  const CudaDriver& driver = cuda_driver();
  const WhileOthersCapture relaxed;
  const int error = driver.cuMemcpyHtoDAsync_v2(to, from, bytes, stream_);
  check_cuda(error != 0 ? error : driver.cuStreamSynchronize(stream_), "cuMemcpyHtoDAsync");
}

InContext::InContext(const Context& context) {
  cuda_driver().cuCtxGetCurrent(&before_);
  if (before_ != context.handle()) {
    check_cuda(cuda_driver().cuCtxSetCurrent(context.handle()), "cuCtxSetCurrent");
    changed_ = true;
  }
}

InContext::~InContext() {
  if (changed_) {
    cuda_driver().cuCtxSetCurrent(before_);
  }
}

}  // namespace unisono::device
