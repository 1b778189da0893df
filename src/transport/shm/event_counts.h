// Sleeping and waking between ranks.
//
// A rank that has waited long enough announces its sleep in its event count, orders the
// announcement against everybody's sends with one membarrier, polls once more, and sleeps in a
// futex. So senders need no fence: they send, and read one word (`sleepers`) that is almost always
// zero and in their cache. If the kernel has no membarrier, sleeps are short. Every sleep is
// bounded, because the sleeper also watches for deaths and timeouts.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/shm/layout.h"

namespace unisono::shm {

class EventCounts {
 public:
  // `memory`: laid out as EventCountLayout.
  EventCounts(std::byte* memory, int ranks);

  // Called after every send and release, for each rank that may wait for it.
  bool anybody_sleeps() const noexcept {
    // The light side of the membarrier: the compiler, too, must keep this load after the send.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return sleepers_->load(std::memory_order_relaxed) != 0;
  }
  void notify(int rank) noexcept;
  void notify_all() noexcept;

  // Call prepare_wait(), poll again, and then wait() or cancel_wait().
  std::uint32_t prepare_wait(int rank) noexcept;
  void wait(int rank, std::uint32_t seen, int timeout_us) noexcept;
  void cancel_wait(int rank) noexcept;
  // From now on ranks are woken by a write to these descriptors, by rank, because they sleep
  // elsewhere.
  void wake_through(std::vector<int> descriptors) noexcept {
    descriptors_ = std::move(descriptors);
  }
  int longest_sleep_us() const noexcept { return fenced_ ? 1000 : 100; }

  EventCount& of(int rank) noexcept { return event_counts_[rank]; }

 private:
  void wake(int rank) noexcept;

  std::atomic<std::uint32_t>* sleepers_;
  EventCount* event_counts_;
  std::vector<int> descriptors_;
  int ranks_;
  bool fenced_;
};

}  // namespace unisono::shm
