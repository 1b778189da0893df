// A device as one group uses it: its context, a stream of our own, and what has been allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cuda_driver.h"

namespace unisono::device {

class Context {
 public:
  // Errors: config, where there is no such device.
  explicit Context(int device);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  // REQUIRES: nobody uses what was allocated or mapped any more.
  ~Context();

  void* handle() const noexcept { return handle_; }
  // As this process counts its devices.
  int number() const noexcept { return number_; }
  // The device's own, by whatever number a process has it.
  DeviceUuid uuid() const;
  int processors() const;
  // Zeroed, and there as long as this lives.
  std::uint64_t allocate(std::size_t bytes);
  // Memory of another process, in this one's addresses, until unmap().
  std::uint64_t map(const IpcHandle& memory);
  void unmap() noexcept;
  // Memory of this process on another device can be reached from here.
  void enable_peer(int device);
  // Waits until it is there. Also while a stream of this thread captures a graph.
  void upload(std::uint64_t to, const void* from, std::size_t bytes);

 private:
  void release() noexcept;

  int number_;
  int device_ = 0;  // the driver's handle
  void* handle_ = nullptr;
  void* stream_ = nullptr;
  std::vector<std::uint64_t> allocated_ = {};
  std::vector<std::uint64_t> mapped_ = {};
  std::vector<int> peers_ = {};
};

// The thread has the device's context while this lives.
class InContext {
 public:
  explicit InContext(const Context& context);
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext();

 private:
  void* before_ = nullptr;
  bool changed_ = false;
};

// For destructors: `release` with the device's context, where the driver still gives it.
template <class Release>
void quietly_in(void* context, const Release& release) noexcept {
  void* before = nullptr;
  cuda_driver().cuCtxGetCurrent(&before);
  cuda_driver().cuCtxSetCurrent(context);
  release();
  cuda_driver().cuCtxSetCurrent(before);
}

}  // namespace unisono::device
