#include "transport/shm/bells.h"

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

Bells::Bells(std::byte* memory, int ranks)
    : sleepers_(reinterpret_cast<std::atomic<std::uint32_t>*>(memory + BellLayout(ranks).sleepers)),
      bells_(reinterpret_cast<Bell*>(memory + BellLayout(ranks).bells)),
      ranks_(ranks),
      fenced_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

void Bells::ring(int rank) noexcept {
  Bell& bell = bells_[rank];
  if (bell.sleeping.load(std::memory_order_relaxed) != 0) {
    wake(rank);
  }
}

void Bells::wake(int rank) noexcept {
  bells_[rank].rings.fetch_add(1, std::memory_order_release);
  if (descriptors_.empty()) {
    futex_wake(bells_[rank].rings);
    return;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t done =
      ::write(descriptors_[static_cast<std::size_t>(rank)], &one, sizeof(one));
}

void Bells::ring_all() noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    wake(rank);
  }
}

std::uint32_t Bells::prepare(int rank) noexcept {
  Bell& bell = bells_[rank];
  const std::uint32_t seen = bell.rings.load(std::memory_order_acquire);
  bell.sleeping.fetch_add(1, std::memory_order_seq_cst);
  sleepers_->fetch_add(1, std::memory_order_seq_cst);
  if (fenced_) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
  return seen;
}

void Bells::sleep(int rank, std::uint32_t seen, int timeout_us) noexcept {
  const timespec limit{.tv_sec = timeout_us / 1'000'000,
                       .tv_nsec = static_cast<long>(timeout_us % 1'000'000) * 1000};
  syscall(SYS_futex, &bells_[rank].rings, FUTEX_WAIT, seen, &limit, nullptr, 0);
  cancel(rank);
}

void Bells::cancel(int rank) noexcept {
  sleepers_->fetch_sub(1, std::memory_order_relaxed);
  bells_[rank].sleeping.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace unisono::shm
