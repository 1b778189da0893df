// Driver functions that only tests use.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include "base/collectives.h"
#include "base/env.h"
#include "device/cuda_driver.h"
#include "device/testing_results.h"
#include "unisono/device.hpp"

namespace unisono::device {

template <class Function>
Function* driver_function(const char* name) {
  static void* const library =
      ::dlopen(read_env("UNISONO_CUDA").value_or("libcuda.so.1").c_str(), RTLD_NOW);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    throw std::runtime_error(std::string("the driver has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

inline constexpr int kOfThread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

// Sets the devices that this process sees from now on, and the pairs that cannot reach each other
// (testing_memory.h). REQUIRES: no other thread is using the driver.
inline void see_devices(const std::string& devices, const std::string& apart = "") {
  ::setenv("FAKE_CUDA_DEVICES", devices.c_str(), 1);
  ::setenv("FAKE_CUDA_APART", apart.c_str(), 1);
}

// Makes devices visible during the object's lifetime.
class VisibleDevices {
 public:
  explicit VisibleDevices(const std::string& devices, const std::string& apart = "") {
    see_devices(devices, apart);
  }
  VisibleDevices(const VisibleDevices&) = delete;
  VisibleDevices& operator=(const VisibleDevices&) = delete;
  ~VisibleDevices() {
    ::unsetenv("FAKE_CUDA_DEVICES");
    ::unsetenv("FAKE_CUDA_APART");
  }
};

inline void* current_context() {
  void* context = nullptr;
  check_cuda(cuda_driver().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  return context;
}

// Makes the device's context current in the thread, as programs that use CUDA's runtime do.
class OnDevice {
 public:
  explicit OnDevice(int number) : before_(current_context()) {
    check_cuda(cuda_driver().cuDeviceGet(&device_, number), "cuDeviceGet");
    check_cuda(cuda_driver().cuDevicePrimaryCtxRetain(&context_, device_), "retain");
    check_cuda(cuda_driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    cuda_driver().cuCtxSetCurrent(before_);
    cuda_driver().cuDevicePrimaryCtxRelease_v2(device_);
  }
  void* context() const { return context_; }

 private:
  int device_ = 0;
  void* context_ = nullptr;
  void* before_ = nullptr;
};

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

// Device memory, which this driver allocates on the host.
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

// Returns the error that `body` throws on this rank.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

// Copies bytes to and from device memory. In the test driver, device memory is host memory.
struct DeviceCopies {
  std::function<void(unsigned char* to, const unsigned char* from, std::size_t bytes)> write =
      [](unsigned char* to, const unsigned char* from, std::size_t bytes) {
        std::memcpy(to, from, bytes);
      };
  std::function<void(unsigned char* to, const unsigned char* from, std::size_t bytes)> read = write;
};

// Makes a rank's call of a trial. Returns an error text, or "" if the result is right.
inline std::string run_trial(DeviceGroup& group, Communicator& comm, const Trial& trial,
                             unsigned char* in, unsigned char* out, void* stream,
                             bool may_have_none = true, const DeviceCopies& copies = {}) {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> recv_counts;
  const Bytes& input = trial.inputs[static_cast<std::size_t>(comm.rank())];
  Call call = call_of(trial, comm.rank(), counts, recv_counts);
  call.out = trial.in_place ? in : out;
  unsigned char* from = in;
  if (trial.part_in_place) {
    const std::size_t part = bytes_before_part(trial, comm.rank());
    const bool is_input = traits_of(trial.collective).input == Holding::part;
    from = is_input ? out + part : in;
    call.out = is_input ? out : in + part;
  }
  call.in = from;
  if (!input.empty()) {
    copies.write(from, input.data(), input.size());
  }
  // A buffer without elements may be null. In a reduce, each rank may choose to be in place.
  const bool is_free = may_have_none && !trial.part_in_place &&
                       (!trial.in_place || trial.collective == Collective::reduce);
  if (input.empty() && is_free) {
    call.in = nullptr;
  }
  if (output_bytes(trial, comm.rank()) == 0 && is_free) {
    call.out = nullptr;
  }
  group.run(call, stream);
  group.synchronize(stream);
  comm.barrier();  // all kernels have ended: CUDA may hold back copies while a kernel waits
  Bytes got(output_bytes(trial, comm.rank()));
  if (!got.empty()) {
    copies.read(got.data(), static_cast<const unsigned char*>(call.out), got.size());
  }
  const bool right = same(trial.dtype, got, result_of(trial, comm.rank()));
  comm.barrier();  // before the memory is written again
  return right
             ? ""
             : std::string(to_string(call.collective)) + ' ' + std::string(to_string(call.dtype)) +
                   ' ' + std::string(to_string(call.reduction.op)) + ", count " +
                   std::to_string(call.count) + ", rank " + std::to_string(comm.rank()) + " of " +
                   std::to_string(comm.size()) +
                   (trial.in_place || trial.part_in_place ? ", in place" : "");
}

}  // namespace unisono::device
