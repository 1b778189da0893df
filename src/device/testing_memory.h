// The devices of the driver without a GPU, and their memory, which is the host's: who may use what.
//
// FAKE_CUDA_DEVICES says which of the machine's devices a process sees, in its order, such as
// "2,0"; as with CUDA_VISIBLE_DEVICES, number 0 is then the machine's device 2. FAKE_CUDA_APART
// says which do not reach the memory of which, such as "0>1,2>0", by their numbers in the machine.
// Without FAKE_CUDA_DEVICES there is device 0 alone, and a thread that has no context has its.
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
  std::set<int> peers = {};  // devices whose memory it has asked for
};

// By the process's number of its device; nullptr: there is none.
Context* primary_context(int number);
// What the calling thread has; nullptr: none.
Context* current_context();
// As the thread has set it.
Context*& set_context();

class Memory {
 public:
  // Error codes of the driver, 0 for none, as everywhere here.
  int enable_peer(Context& context, const Context& peer);
  void disable_peers(Context& context);
  int allocate(const Context& context, std::size_t bytes, std::uint64_t* place);
  int handle_of(std::uint64_t place, IpcHandle* handle);
  int open(const Context& context, const IpcHandle& handle, std::uint64_t* place);
  // A real driver waits for all kernels of the device first. Here the memory waits, and not the
  // caller: a rank that frees while the kernel of another rank waits for it would wait for ever.
  int give_back(std::uint64_t place);
  // From now on it is as if from a pool: its own device alone reaches it.
  void put_in_pool(std::uint64_t place);
  // The device that has it, by the machine's number; -1: it is no memory of a device.
  int device_of(std::uint64_t place);
  bool is_in_pool(std::uint64_t place);
  // Ends the process where a kernel of `context` must not use it. Memory of the host is not known.
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
  std::map<std::uint64_t, Mapping> freed_ = {};  // while work that may reach it is not done
  std::atomic<int> undone_ = 0;                  // pieces of work of all streams
};

Memory& memory();

}  // namespace unisono::device::fake
