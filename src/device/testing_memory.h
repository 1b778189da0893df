// Devices of the test driver, which needs no GPU. Device memory is host memory with access rights.
//
// FAKE_CUDA_DEVICES lists the machine's devices that a process sees. As with CUDA_VISIBLE_DEVICES,
// "2,0" makes the machine's device 2 the process's device 0. FAKE_CUDA_APART lists pairs of
// devices, by their numbers in the machine: with "0>1,2>0", device 0 cannot reach the memory of
// device 1, and device 2 cannot reach the memory of device 0. Without FAKE_CUDA_DEVICES there is
// only device 0, and a thread that has set no context uses that device's context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "device/cuda_driver.h"

namespace unisono::device::fake {

inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kInvalidContext = 201;
inline constexpr int kPeerAccessUnsupported = 217;
inline constexpr int kPeerAccessAlreadyEnabled = 704;
inline constexpr int kTooManyPeers = 711;

// Returns the machine's device numbers.
std::vector<int> visible_devices();

// The primary context of a device.
struct Context {
  int device = 0;  // its number in the machine
  std::atomic<int> retained = 0;
  std::set<int> peers = {};  // devices whose memory it has requested
};

// Returns the context for a device number in this process, or nullptr.
Context* primary_context(int number);
// Returns the calling thread's context, or nullptr.
Context* current_context();
// Refers to the context that the thread has set.
Context*& set_context();

class Memory {
 public:
  // All functions here return the driver's error codes, 0 for none.
  int enable_peer(Context& context, const Context& peer);
  void disable_peers(Context& context);
  int allocate(const Context& context, std::size_t bytes, std::uint64_t* place);
  int handle_of(std::uint64_t place, IpcHandle* handle);
  int open(const Context& context, const IpcHandle& handle, std::uint64_t* place);
  // Frees memory once all kernels have ended, and returns at once. A real driver waits for the
  // device's kernels, which would deadlock if another rank's kernel waits for this rank.
  int give_back(std::uint64_t place);
  // Turns memory into pool memory, which only its own device can reach.
  void put_in_pool(std::uint64_t place);
  // Returns the machine's number of the memory's device, or -1 if it is not device memory.
  int device_of(std::uint64_t place);
  bool is_in_pool(std::uint64_t place);
  // Ends the process if a kernel of `context` must not use the memory. Does not check host memory.
  void check_use(const Context& context, const void* data, const char* what);
  int size();

  void work_begins() { ++undone_; }
  void work_ends();

 private:
  struct Mapping {
    std::size_t bytes = 0;
    int file = -1;
    int device = 0;
    const Context* opened_by = nullptr;  // set for another process's memory
    bool in_pool = false;
  };
  static bool may_use(const Context& context, const Mapping& mapping);
  int map(int file, const Mapping& mapping, std::uint64_t* place);
  const Mapping* find(std::uint64_t place) const;
  void unmap_freed();

  std::mutex mutex_ = {};
  std::map<std::uint64_t, Mapping> mappings_ = {};
  std::map<std::uint64_t, Mapping> freed_ = {};  // kept until work that may access it is done
  std::atomic<int> undone_ = 0;                  // pending work items of all streams
};

Memory& memory();

}  // namespace unisono::device::fake
