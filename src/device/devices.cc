#include "device/devices.h"

#include "device/cuda_driver.h"
#include "device/kernel_library.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

// CU_DEVICE_ATTRIBUTE_...
constexpr int kProcessors = 16;
constexpr int kMajor = 75;
constexpr int kMinor = 76;

std::string attribute(int device, int which) {
  int value = 0;
  check_cuda(cuda_driver().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return std::to_string(value);
}

}  // namespace

std::vector<std::string> devices() {
  std::vector<std::string> found;
  int device = 0;
  while (cuda_driver().cuDeviceGet(&device, static_cast<int>(found.size())) == 0) {
    found.push_back("sm_" + attribute(device, kMajor) + attribute(device, kMinor) + " with " +
                    attribute(device, kProcessors) + " processors");
  }
  return found;
}

std::string why_no_devices() {
  try {
    if (devices().empty()) {
      return "CUDA's driver shows no device";
    }
    kernel_module(Dtype::f32);
  } catch (const Error& error) {
    return std::string(error.summary());
  }
  return "";
}

}  // namespace unisono::device
