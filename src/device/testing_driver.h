// What tests use of the driver beside what unisono does.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "base/env.h"
#include "device/cuda_driver.h"
#include "device/testing_results.h"

namespace unisono::device {

template <class Function>
Function* driver_function(const char* name) {
  static void* const library = ::dlopen(read_env("UNISONO_CUDA").value_or("").c_str(), RTLD_NOW);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    throw std::runtime_error(std::string("UNISONO_CUDA has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

class OwnStream {
 public:
  OwnStream() { check_cuda(cuda_driver().cuStreamCreate(&stream_, 1), "cuStreamCreate"); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { cuda_driver().cuStreamDestroy_v2(stream_); }
  void* handle() const { return stream_; }

 private:
  void* stream_ = nullptr;
};

// Device memory, which this driver has on the host.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) {
    check_cuda(cuda_driver().cuMemAlloc_v2(&place_, bytes + 1), "cuMemAlloc");
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cuda_driver().cuMemFree_v2(place_); }
  unsigned char* data() const { return reinterpret_cast<unsigned char*>(place_); }

 private:
  std::uint64_t place_ = 0;
};

}  // namespace unisono::device
