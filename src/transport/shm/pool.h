// The slots of one rank: pieces of shared memory for messages too long for cells. The rank's
// communicators take and give them, from any of its threads, without a lock; its peers only read.
//
// First given, first taken: a slot that was read just now is still in the reader's cache, and to
// write it costs the time to take every line away from there. After a round through the other
// slots it is in the cache that the two cores share; between such cores that is three times faster.
// More slots than those of the round are used only when these are in use, so that a burst does not
// make the round longer than the caches.
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

  // `slots` in all, of which the first `round` are used before any is used again.
  explicit Pool(std::byte* memory, std::uint32_t slots = kSlotsPerRank,
                std::uint32_t round = kSlotsPerRound)
      : memory_(memory), next_(slots), begins_(slots), round_(round), fresh_(round) {
    for (std::uint32_t slot = 0; slot < round; ++slot) {
      next_[slot].store(slot + 1 < round ? slot + 1 : kNone, std::memory_order_relaxed);
    }
  }

  // Takes a slot of the round. kNone: they are in use, or another thread begins a round just now.
  std::uint32_t take() noexcept {
    const std::uint32_t slot = pop(free_);
    return slot == kNone ? begin_round() : slot;
  }
  // One more, which may cost memory. kNone: there are no more.
  std::uint32_t take_spare() noexcept {
    std::uint32_t slot = pop(spare_);
    if (slot != kNone) {
      return slot;
    }
    slot = fresh_.load(std::memory_order_relaxed);
    while (slot < next_.size() &&
           !fresh_.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed)) {
    }
    return slot < next_.size() ? slot : kNone;
  }
  void give(std::uint32_t slot) noexcept {
    if (slot >= round_) {
      push(spare_, slot, slot);
      return;
    }
    std::uint32_t top = given_.load(std::memory_order_relaxed);
    do {
      next_[slot].store(top, std::memory_order_relaxed);
    } while (!given_.compare_exchange_weak(top, slot, std::memory_order_release));
  }
  // Where so many bytes go in a slot that was taken: behind those of the last time, so that short
  // messages go round as much memory as long ones.
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
  std::uint32_t pop(std::atomic<std::uint64_t>& stack) noexcept {
    std::uint64_t top = stack.load(std::memory_order_acquire);
    while (index(top) != kNone) {
      const std::uint32_t slot = index(top);
      const std::uint64_t below = pack(next_[slot].load(std::memory_order_relaxed), top);
      if (stack.compare_exchange_weak(top, below, std::memory_order_acquire)) {
        return slot;
      }
    }
    return kNone;
  }
  // Takes all that were given, turns them round so that the first given is on top, keeps that one
  // and frees the others.
  std::uint32_t begin_round() noexcept {
    const std::uint32_t last = given_.exchange(kNone, std::memory_order_acquire);
    std::uint32_t first = kNone;
    for (std::uint32_t slot = last; slot != kNone;) {
      const std::uint32_t given_before = next_[slot].load(std::memory_order_relaxed);
      next_[slot].store(first, std::memory_order_relaxed);
      first = slot;
      slot = given_before;
    }
    if (first != last) {
      push(free_, next_[first].load(std::memory_order_relaxed), last);
    }
    return first;
  }
  // A chain, from its top to its bottom.
  void push(std::atomic<std::uint64_t>& stack, std::uint32_t first, std::uint32_t last) noexcept {
    std::uint64_t top = stack.load(std::memory_order_relaxed);
    do {
      next_[last].store(index(top), std::memory_order_relaxed);
    } while (!stack.compare_exchange_weak(top, pack(first, top), std::memory_order_release));
  }

  // The upper half counts changes, so that a slot taken and freed again meanwhile is noticed.
  static std::uint32_t index(std::uint64_t top) noexcept { return static_cast<std::uint32_t>(top); }
  static std::uint64_t pack(std::uint32_t slot, std::uint64_t top) noexcept {
    return (((top >> 32) + 1) << 32) | slot;
  }
  std::byte* memory_;
  std::vector<std::atomic<std::uint32_t>> next_;
  std::vector<std::size_t> begins_;  // [slot]: of the lane that holds it
  std::uint32_t round_;
  std::atomic<std::uint64_t> free_ = 0;       // the top of those of the round to take
  std::atomic<std::uint32_t> given_ = kNone;  // of those of the round that were given back
  std::atomic<std::uint64_t> spare_ = kNone;  // of the others that are free
  std::atomic<std::uint32_t> fresh_;          // the first that was never taken
};

}  // namespace unisono::shm
