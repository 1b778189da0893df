#include "device/residence.h"

#include <cstdint>
#include <string>
#include <utility>

#include "device/context.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_...
// CU_POINTER_ATTRIBUTE_...
constexpr int kMemoryType = 2;
constexpr int kIsManaged = 8;
constexpr int kDeviceOrdinal = 9;
constexpr int kIsOfCudaMalloc = 10;  // ..._IS_LEGACY_CUDA_IPC_CAPABLE

[[noreturn]] void refuse_place(const std::string& what) {
  throw Error(ErrorCode::usage, what);
}

}  // namespace

Residence residence_of(const void* data, int own) {
  if (data == nullptr) {
    return {.device = own};
  }
  unsigned type = 0;
  unsigned managed = 0;
  int device = own;
  unsigned allocated = 0;
  const int which[] = {kMemoryType, kIsManaged, kDeviceOrdinal, kIsOfCudaMalloc};
  void* values[] = {&type, &managed, &device, &allocated};
  const int error =
      cuda_driver().cuPointerGetAttributes(4, which, values, reinterpret_cast<std::uint64_t>(data));
  return {.on_device = error == 0 && type == kDeviceMemory,
          .device = managed != 0 ? own : device,
          .for_peers = managed != 0 || allocated != 0};
}

void check_buffers(const Residence& in, const Residence& out, const Context& context, int rank) {
  if (!in.on_device || !out.on_device) {
    refuse_place("in is memory of the " + std::string(in.on_device ? "device" : "host") +
                 ", out of the " + (out.on_device ? "device" : "host") +
                 "\npass device memory to a device group, and host memory to its communicator");
  }
  for (const auto& [name, device] : {std::pair{"in", in.device}, std::pair{"out", out.device}}) {
    if (device != context.number()) {
      refuse_place(std::string(name) + " is memory of device " + std::to_string(device) +
                   ", and the group of rank " + std::to_string(rank) + " is on device " +
                   std::to_string(context.number()) +
                   "\ngive each rank memory of the device set in its DeviceOptions");
    }
  }
}

void check_stream(void* stream, const Context& context, int rank) {
  void* its = nullptr;
  if (cuda_driver().cuStreamGetCtx(stream, &its) == 0 && its != context.handle()) {
    refuse_place("the stream does not belong to device " + std::to_string(context.number()) +
                 ", where the group of rank " + std::to_string(rank) +
                 " is\ncreate the stream while that device is current (cudaSetDevice)");
  }
}

}  // namespace unisono::device
