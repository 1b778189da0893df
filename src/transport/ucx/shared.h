// State shared by the links of a process: the mutex, the worker, memory, and notifications.
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

// For tests and statistics. A message counts when it is sent and when its header arrives.
struct UcxTraffic {
  std::uint64_t sent = 0;
  std::uint64_t come = 0;
  std::uint64_t copied_bytes = 0;  // of long messages, by this library, on either side
  std::uint64_t direct_bytes = 0;  // received directly into their reader's destination
};

struct Shared {
  // Guards all links and their lanes, the worker, and all members below except `events`. The user
  // of a lane reads the lane's `sent` and `drained` without the mutex: only this user changes
  // `sent`, and `drained` is atomic.
  std::mutex mutex;
  Worker* worker = nullptr;
  std::function<void()> arrived = nullptr;  // for data of another thread than the polling one
  const UcxLane* own = nullptr;             // the lane that the polling thread checks next
  transport::Slots out_slots;
  transport::Slots in_slots;
  UcxTraffic traffic;
  static constexpr std::size_t kMostAnnounced = 256;
  std::uint32_t slots_per_lane = 8;
  std::atomic<int> events = 0;  // links that broke, or whose peer left

  std::vector<UcxLane*> announced = {};  // lanes with long messages that nobody has checked yet

  Shared() { announced.reserve(kMostAnnounced); }
  // Ignores lanes beyond the limit; their readers check themselves.
  void announce(UcxLane* lane) {
    if (announced.size() < kMostAnnounced) {
      announced.push_back(lane);
    }
  }
  // Returns true if something happened.
  bool progress() noexcept;
  // As progress(), for a reader that checks this lane next.
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
