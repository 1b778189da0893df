// The slots of one rank: cache-sized pieces of shared memory for messages too long for cells. The
// rank's communicators take and give them, from any of its threads, without a lock; its peers only
// read. Last given, first taken: the slot that is still in the cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/shm/layout.h"

namespace unisono::shm {

class Pool {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffffU;

  explicit Pool(std::byte* memory) : memory_(memory), next_(kSlotsPerRank) {
    for (std::uint32_t slot = 0; slot < kSlotsPerRank; ++slot) {
      next_[slot].store(slot + 1 < kSlotsPerRank ? slot + 1 : kNone, std::memory_order_relaxed);
    }
  }

  std::uint32_t take() noexcept {
    std::uint64_t top = top_.load(std::memory_order_acquire);
    while (index(top) != kNone) {
      const std::uint32_t slot = index(top);
      const std::uint64_t below = pack(next_[slot].load(std::memory_order_relaxed), top);
      if (top_.compare_exchange_weak(top, below, std::memory_order_acquire)) {
        return slot;
      }
    }
    return kNone;
  }
  void give(std::uint32_t slot) noexcept {
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      next_[slot].store(index(top), std::memory_order_relaxed);
    } while (!top_.compare_exchange_weak(top, pack(slot, top), std::memory_order_release));
  }
  std::byte* data(std::uint32_t slot) const noexcept { return memory_ + slot * kSlotBytes; }

 private:
  // The upper half counts changes, so that a slot taken and given back meanwhile is noticed.
  static std::uint32_t index(std::uint64_t top) noexcept { return static_cast<std::uint32_t>(top); }
  static std::uint64_t pack(std::uint32_t slot, std::uint64_t top) noexcept {
    return (((top >> 32) + 1) << 32) | slot;
  }
  std::byte* memory_;
  std::atomic<std::uint64_t> top_ = 0;
  std::vector<std::atomic<std::uint32_t>> next_;
};

}  // namespace unisono::shm
