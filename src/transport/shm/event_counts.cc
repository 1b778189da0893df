#include "transport/shm/event_counts.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace unisono::shm {
namespace {

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool membarrier(int command) noexcept {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

EventCounts::EventCounts(std::byte* memory, int ranks)
    : sleepers_(
          reinterpret_cast<std::atomic<std::uint32_t>*>(memory + EventCountLayout(ranks).sleepers)),
      event_counts_(reinterpret_cast<EventCount*>(memory + EventCountLayout(ranks).event_counts)),
      ranks_(ranks),
      fenced_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

void EventCounts::notify(int rank) noexcept {
  EventCount& events = event_counts_[rank];
  if (events.sleeping.load(std::memory_order_relaxed) != 0) {
    wake(rank);
  }
}

void EventCounts::wake(int rank) noexcept {
  event_counts_[rank].count.fetch_add(1, std::memory_order_release);
  if (descriptors_.empty()) {
    futex_wake(event_counts_[rank].count);
    return;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t done =
      ::write(descriptors_[static_cast<std::size_t>(rank)], &one, sizeof(one));
}

void EventCounts::notify_all() noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    wake(rank);
  }
}

std::uint32_t EventCounts::prepare_wait(int rank) noexcept {
  EventCount& events = event_counts_[rank];
  const std::uint32_t seen = events.count.load(std::memory_order_acquire);
  events.sleeping.fetch_add(1, std::memory_order_seq_cst);
  sleepers_->fetch_add(1, std::memory_order_seq_cst);
  if (fenced_) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
  return seen;
}

void EventCounts::wait(int rank, std::uint32_t seen, int timeout_us) noexcept {
  const timespec limit{.tv_sec = timeout_us / 1'000'000,
                       .tv_nsec = static_cast<long>(timeout_us % 1'000'000) * 1000};
  syscall(SYS_futex, &event_counts_[rank].count, FUTEX_WAIT, seen, &limit, nullptr, 0);
  cancel_wait(rank);
}

void EventCounts::cancel_wait(int rank) noexcept {
  sleepers_->fetch_sub(1, std::memory_order_relaxed);
  event_counts_[rank].sleeping.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace unisono::shm
