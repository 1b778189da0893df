// Sleeping and waking between ranks.
//
// A rank that has waited long enough announces its sleep in its event count, orders the
// announcement against all senders with one membarrier, polls once more, and sleeps in a futex.
// Therefore a sender needs no fence: after it has sent, it reads one word (`sleepers`), which is
// almost always zero and in the sender's cache. If the kernel has no membarrier, ranks sleep only
// for short times. Every sleep is bounded, because the sleeper also watches for deaths and
// timeouts.
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

  // Returns true if a rank sleeps. Senders check this after every send and every release.
  bool anybody_sleeps() const noexcept {
    // The light side of the membarrier: the compiler, too, must keep this load after the send.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return sleepers_->load(std::memory_order_relaxed) != 0;
  }
  void notify(int rank) noexcept;
  void notify_all() noexcept;

  // Announces a sleep. The caller then polls once more, and calls wait() or cancel_wait().
  std::uint32_t prepare_wait(int rank) noexcept;
  void wait(int rank, std::uint32_t seen, int timeout_us) noexcept;
  void cancel_wait(int rank) noexcept;
  // Wakes ranks by writing to these descriptors (one per rank) from now on, because the ranks sleep
  // on them and not on the event counts.
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
