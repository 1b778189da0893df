// A device as used by one group: its context, a stream of its own, and its allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cuda_driver.h"

namespace unisono::device {

class Context {
 public:
  // Errors: config if there is no such device.
  explicit Context(int device);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  // REQUIRES: nothing uses the allocated or mapped memory any more.
  ~Context();

  void* handle() const noexcept { return handle_; }
  // By the numbering of this process.
  int number() const noexcept { return number_; }
  // Identifies the device, whatever number it has in a process.
  DeviceUuid uuid() const;
  int processors() const;
  // Returns zeroed memory that lives as long as this object.
  std::uint64_t allocate(std::size_t bytes);
  // Maps memory of another process into this one, until unmap().
  std::uint64_t map(const IpcHandle& memory);
  void unmap() noexcept;
  // Makes this process's memory on another device accessible from here.
  void enable_peer(int device);
  // Waits for the copy. Works also while a stream of this thread captures a graph.
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

// Makes the device's context current in the thread while it lives.
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

// For destructors: runs `release` with the device's context, if the driver still provides it.
template <class Release>
void quietly_in(void* context, const Release& release) noexcept {
  void* before = nullptr;
  cuda_driver().cuCtxGetCurrent(&before);
  cuda_driver().cuCtxSetCurrent(context);
  release();
  cuda_driver().cuCtxSetCurrent(before);
}

}  // namespace unisono::device
