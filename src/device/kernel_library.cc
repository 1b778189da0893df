#include "device/kernel_library.h"

#include <dlfcn.h>

#include <string>

#include "device/cuda_driver.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr const char* kKernelLibrary = "libunisono_cuda.so.0";

using Find = const void* (*)(int dtype);

Find load() {
  if (cuda_driver().kernels != nullptr) {
    return cuda_driver().kernels;
  }
  void* const library = ::dlopen(kKernelLibrary, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, "unisono_cuda_kernels");
  if (found == nullptr) {
    const char* why = ::dlerror();
    throw Error(ErrorCode::config, std::string("the kernels for GPUs cannot be loaded: ") +
                                       (why == nullptr ? "" : why) +
                                       "\nbuild unisono on a machine with nvcc, which makes " +
                                       kKernelLibrary + " beside libunisono_device.so.0");
  }
  return reinterpret_cast<Find>(found);
}

}  // namespace

const void* kernel_module(Dtype dtype) {
  static const Find find = load();
  return find(static_cast<int>(dtype == Dtype::boolean ? Dtype::u8 : dtype));
}

}  // namespace unisono::device
