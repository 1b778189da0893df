// What the links of a process have in common: the mutex, the worker, memory, and what they tell.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "transport/memory.h"
#include "transport/ucx/worker.h"

namespace unisono::ucx {

struct UcxLane;

// For tests and statistics. A message is counted when it goes and when its header comes.
struct UcxTraffic {
  std::uint64_t sent = 0;
  std::uint64_t come = 0;
  std::uint64_t copied_bytes = 0;  // of long messages, by this library, on either side
  std::uint64_t direct_bytes = 0;  // came straight to where their reader wanted them
};

struct Shared {
  // Guards the rest but `events`, what the worker does, and all links and their lanes. The user of
  // a lane reads its `sent` and `drained` without it: nobody else changes the one, and the other is
  // atomic.
  std::mutex mutex;
  Worker* worker = nullptr;
  std::function<void()> arrived = nullptr;  // something for another thread than the one that looks
  const UcxLane* own = nullptr;             // what that thread looks at next
  transport::Slots out_slots;
  transport::Slots in_slots;
  UcxTraffic traffic;
  static constexpr std::size_t kMostAnnounced = 256;
  std::uint32_t slots_per_lane = 8;
  std::atomic<int> events = 0;  // links that broke, or whose peer left

  std::vector<UcxLane*> announced = {};  // lanes with long messages that nobody has looked at yet

  Shared() { announced.reserve(kMostAnnounced); }
  // Beyond that, their readers look themselves.
  void announce(UcxLane* lane) {
    if (announced.size() < kMostAnnounced) {
      announced.push_back(lane);
    }
  }
  // True: something happened.
  bool progress() noexcept;
  // The same for a reader of this lane, which is looked at next.
  void progress_for(const UcxLane& lane) noexcept;
  void tell(const UcxLane* lane) const {
    if (lane != own && arrived != nullptr) {
      arrived();
    }
  }
  void changed() {
    events.fetch_add(1, std::memory_order_release);
    tell(nullptr);
  }
};

}  // namespace unisono::ucx
