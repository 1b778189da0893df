// The slots that a lane has sent and its readers may still use, in the order in which they were
// sent. Only the lane's thread lends slots; any thread of the rank may take them back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "transport/shm/layout.h"
#include "transport/shm/pool.h"

namespace unisono::shm {

// Returns true if readers that have released cells up to `released` have released every cell before
// `position`.
constexpr bool is_behind(std::uint32_t released, std::uint32_t position) noexcept {
  return static_cast<std::int32_t>(released - (position - 1)) >= 0;
}

class LentSlots {
 public:
  // Adds a slot, which is free once every cell before `position` has been released. REQUIRES:
  // count() < kSlotsPerLane.
  void lend(std::uint32_t slot, std::uint32_t position) noexcept {
    const std::uint32_t end = end_.load(std::memory_order_relaxed);
    lent_[end % kSlotsPerLane].slot.store(slot, std::memory_order_relaxed);
    lent_[end % kSlotsPerLane].position.store(position, std::memory_order_relaxed);
    end_.store(end + 1, std::memory_order_release);
  }
  std::uint32_t count() const noexcept {
    return end_.load(std::memory_order_relaxed) - begin_.load(std::memory_order_relaxed);
  }
  // Returns slots to the pool, beginning with the oldest, until `is_free(position)` returns false.
  template <typename IsFree>
  void give_back(Pool& pool, IsFree is_free) noexcept {
    std::uint32_t begin = begin_.load(std::memory_order_acquire);
    while (begin != end_.load(std::memory_order_acquire)) {
      const std::uint32_t slot = lent_[begin % kSlotsPerLane].slot.load(std::memory_order_relaxed);
      if (!is_free(lent_[begin % kSlotsPerLane].position.load(std::memory_order_relaxed))) {
        return;
      }
      if (begin_.compare_exchange_weak(begin, begin + 1, std::memory_order_acq_rel)) {
        pool.give(slot);
        ++begin;
      }
    }
  }
  // Advances the position of a slot that all readers have released. Without this, after 2^31 more
  // cells the slot would appear to lie ahead of the readers.
  void follow(std::uint32_t released) noexcept {
    const std::uint32_t end = end_.load(std::memory_order_relaxed);
    for (std::uint32_t i = begin_.load(std::memory_order_relaxed); i != end; ++i) {
      std::atomic<std::uint32_t>& position = lent_[i % kSlotsPerLane].position;
      if (is_behind(released, position.load(std::memory_order_relaxed))) {
        position.store(released + 1, std::memory_order_relaxed);
      }
    }
  }

 private:
  struct Lent {
    std::atomic<std::uint32_t> slot;
    std::atomic<std::uint32_t> position;
  };
  std::atomic<std::uint32_t> begin_ = 0;
  std::atomic<std::uint32_t> end_ = 0;
  std::array<Lent, kSlotsPerLane> lent_ = {};
};

}  // namespace unisono::shm
