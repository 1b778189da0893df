// Devices of the fake driver, which needs no GPU. Device memory is host memory with access rights.
//
// FAKE_CUDA_DEVICES lists the machine's devices that a process sees. As with CUDA_VISIBLE_DEVICES,
// "2,0" makes the machine's device 2 the process's device 0. FAKE_CUDA_APART lists pairs of
// devices, by their numbers in the machine: with "0>1,2>0", device 0 cannot reach the memory of
// device 1, nor device 2 that of device 0. Without FAKE_CUDA_DEVICES there is only device 0, and a
// thread that has set no context uses that device's context.
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

// By their numbers in the machine.
std::vector<int> visible_devices();

// The primary context of a device.
struct Context {
  int device = 0;  // its number in the machine
  std::atomic<int> retained = 0;
  std::set<int> peers = {};  // devices whose memory it has requested
};

// By the process's number of the device; nullptr: there is none.
Context* primary_context(int number);
// The calling thread's context; nullptr: none.
Context* current_context();
// The context that the thread has set.
Context*& set_context();

class Memory {
 public:
  // All functions here return the driver's error codes, 0 for none.
  int enable_peer(Context& context, const Context& peer);
  void disable_peers(Context& context);
  int allocate(const Context& context, std::size_t bytes, std::uint64_t* place);
  int handle_of(std::uint64_t place, IpcHandle* handle);
  int open(const Context& context, const IpcHandle& handle, std::uint64_t* place);
  // A real driver first waits for all kernels of the device. Here the memory is kept until then,
  // and the caller continues: a rank that frees while another rank's kernel waits for it would
  // deadlock.
  int give_back(std::uint64_t place);
  // From now on it behaves as pool memory: only its own device can reach it.
  void put_in_pool(std::uint64_t place);
  // Returns the machine's number of its device; -1: it is not device memory.
  int device_of(std::uint64_t place);
  bool is_in_pool(std::uint64_t place);
  // Ends the process if a kernel of `context` must not use it. Host memory is not checked.
  void check_use(const Context& context, const void* data, const char* what);
  int size();

  void work_begins() { ++undone_; }
  void work_ends();

 private:
  struct Mapping {
    std::size_t bytes = 0;
    int file = -1;
    int device = 0;
    const Context* opened_by = nullptr;  // memory of another process
    bool in_pool = false;
  };
  static bool may_use(const Context& context, const Mapping& mapping);
  int map(int file, const Mapping& mapping, std::uint64_t* place);
  const Mapping* find(std::uint64_t place) const;
  void unmap_freed();

  std::mutex mutex_ = {};
  std::map<std::uint64_t, Mapping> mappings_ = {};
  std::map<std::uint64_t, Mapping> freed_ = {};  // until the work that may access it is done
  std::atomic<int> undone_ = 0;                  // pieces of work of all streams
};

Memory& memory();

}  // namespace unisono::device::fake
