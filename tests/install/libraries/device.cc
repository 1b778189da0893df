// Without a GPU, a device group reports what is missing.
#include <cstdio>
#include <unisono/device.hpp>

int main() {
  auto comm = unisono::Communicator::connect();
  try {
    unisono::DeviceGroup group(comm, {.device = 0});
  } catch (const unisono::Error& error) {
    if (error.code() != unisono::ErrorCode::config) {
      std::puts(error.what());
      return 1;
    }
  }
  std::puts("device: right");
  return 0;
}
