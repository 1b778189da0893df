// Lock-free stacks of slots. Several stacks share the links, so a slot is in at most one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace unisono::shm {

inline constexpr std::uint32_t kNoSlot = 0xffff'ffffU;

// links[slot] is the slot below `slot`.
using SlotLinks = std::vector<std::atomic<std::uint32_t>>;

class SlotStack {
 public:
  explicit SlotStack(std::uint32_t top) : top_(top) {}

  // Returns kNoSlot if it is empty.
  std::uint32_t pop(SlotLinks& links) noexcept {
    std::uint64_t top = top_.load(std::memory_order_acquire);
    while (index(top) != kNoSlot) {
      const std::uint32_t slot = index(top);
      const std::uint64_t below = pack(links[slot].load(std::memory_order_relaxed), top);
      if (top_.compare_exchange_weak(top, below, std::memory_order_acquire)) {
        return slot;
      }
    }
    return kNoSlot;
  }
  // Pushes a chain, given by its top and its bottom.
  void push(SlotLinks& links, std::uint32_t first, std::uint32_t last) noexcept {
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      links[last].store(index(top), std::memory_order_relaxed);
    } while (!top_.compare_exchange_weak(top, pack(first, top), std::memory_order_release));
  }

 private:
  // The upper half of the word counts changes. A pop thereby detects a slot that was taken and
  // freed again meanwhile.
  static std::uint32_t index(std::uint64_t top) noexcept { return static_cast<std::uint32_t>(top); }
  static std::uint64_t pack(std::uint32_t slot, std::uint64_t top) noexcept {
    return (((top >> 32) + 1) << 32) | slot;
  }

  std::atomic<std::uint64_t> top_;
};

}  // namespace unisono::shm
