// A device as used by one group: its context, a separate stream, and its allocations.
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
  // Returns the device's number in this process.
  int number() const noexcept { return number_; }
  // Identifies the device across processes, which may number devices differently.
  DeviceUuid uuid() const;
  int processors() const;
  // Returns zeroed memory that lives as long as this object.
  std::uint64_t allocate(std::size_t bytes);
  // Maps memory of another process into this one, until unmap().
  std::uint64_t map(const IpcHandle& memory);
  void unmap() noexcept;
  // Makes this process's memory on another device accessible from here.
  void enable_peer(int device);
  // Copies to the device and waits for the copy. May be called while a stream of this thread
  // captures a graph.
  void upload(std::uint64_t to, const void* from, std::size_t bytes);

 private:
  void release() noexcept;

  int number_;
  int device_ = 0;  // CUdevice
  void* handle_ = nullptr;
  void* stream_ = nullptr;
  std::vector<std::uint64_t> allocated_ = {};
  std::vector<std::uint64_t> mapped_ = {};
  std::vector<int> peers_ = {};
};

// Makes the device's context current in this thread during the object's lifetime.
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

// Runs `release` with the device's context, if the driver still provides it. For destructors.
template <class Release>
void quietly_in(void* context, const Release& release) noexcept {
  void* before = nullptr;
  cuda_driver().cuCtxGetCurrent(&before);
  cuda_driver().cuCtxSetCurrent(context);
  release();
  cuda_driver().cuCtxSetCurrent(before);
}

}  // namespace unisono::device
