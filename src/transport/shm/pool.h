// The slots of one rank: pieces of shared memory for messages too long for cells. Any thread of the
// rank takes and returns slots without a lock, for all of the rank's communicators; the rank's
// peers only read them.
//
// Slots are used in rotation. A slot that was just read is still in the reader's cache, so a writer
// must first take every line away from that cache. After a round through the other slots, the slot
// has moved to the cache that the two cores share, and writing it is three times faster on such
// cores. Slots beyond the round are used only while all slots of the round are in use, so that a
// burst does not make the round larger than the caches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/shm/layout.h"
#include "transport/shm/slot_stack.h"

namespace unisono::shm {

class Pool {
 public:
  static constexpr std::uint32_t kNone = kNoSlot;

  // Creates a pool of `slots` slots. The first `round` slots are all used before any slot is
  // reused.
  explicit Pool(std::byte* memory, std::uint32_t slots = kSlotsPerRank,
                std::uint32_t round = kSlotsPerRound)
      : memory_(memory), links_(slots), begins_(slots), round_(round), fresh_(round) {
    for (std::uint32_t slot = 0; slot < round; ++slot) {
      links_[slot].store(slot + 1 < round ? slot + 1 : kNone, std::memory_order_relaxed);
    }
  }

  // Takes a slot of the round. Returns kNone if all slots are in use, or if another thread is just
  // starting a new round.
  std::uint32_t take() noexcept {
    const std::uint32_t slot = free_.pop(links_);
    return slot == kNone ? begin_round() : slot;
  }
  // Takes a slot beyond the round, which may cost memory. Returns kNone if there are no more.
  std::uint32_t take_spare() noexcept {
    std::uint32_t slot = spare_.pop(links_);
    if (slot != kNone) {
      return slot;
    }
    slot = fresh_.load(std::memory_order_relaxed);
    while (slot < links_.size() &&
           !fresh_.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed)) {
    }
    return slot < links_.size() ? slot : kNone;
  }
  void give(std::uint32_t slot) noexcept {
    if (slot >= round_) {
      spare_.push(links_, slot, slot);
      return;
    }
    std::uint32_t top = given_.load(std::memory_order_relaxed);
    do {
      links_[slot].store(top, std::memory_order_relaxed);
    } while (!given_.compare_exchange_weak(top, slot, std::memory_order_release));
  }
  // Returns the place for so many bytes in a taken slot. The place follows the bytes of the slot's
  // previous message, so that short messages rotate through as much memory as long ones.
  std::byte* room(std::uint32_t slot, std::size_t bytes) noexcept {
    std::size_t& begin = begins_[slot];
    const std::size_t at = begin + bytes <= kSlotBytes ? begin : 0;
    begin = (at + bytes + kAlignment - 1) & ~(kAlignment - 1);
    return memory_ + slot * kSlotBytes + at;
  }
  std::size_t offset_of(const std::byte* room) const noexcept {
    return static_cast<std::size_t>(room - memory_);
  }

 private:
  static constexpr std::size_t kAlignment = 256;

  // Takes all returned slots and reverses their order, so that the slot returned first is on top.
  // Returns that slot and frees the others.
  std::uint32_t begin_round() noexcept {
    const std::uint32_t last = given_.exchange(kNone, std::memory_order_acquire);
    std::uint32_t first = kNone;
    for (std::uint32_t slot = last; slot != kNone;) {
      const std::uint32_t given_before = links_[slot].load(std::memory_order_relaxed);
      links_[slot].store(first, std::memory_order_relaxed);
      first = slot;
      slot = given_before;
    }
    if (first != last) {
      free_.push(links_, links_[first].load(std::memory_order_relaxed), last);
    }
    return first;
  }

  std::byte* memory_;
  SlotLinks links_;
  std::vector<std::size_t> begins_;  // [slot]: of the lane that holds it
  std::uint32_t round_;
  SlotStack free_{0};                         // free slots of the round
  std::atomic<std::uint32_t> given_ = kNone;  // the top of the returned slots of the round
  SlotStack spare_{kNone};                    // other free slots
  std::atomic<std::uint32_t> fresh_;          // the first slot that was never taken
};

}  // namespace unisono::shm
