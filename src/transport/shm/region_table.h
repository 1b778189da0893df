// A table of memory regions with lookups that take no lock while regions are added and removed.
//
// The table consists of blocks of slots, which are reused and never freed, because a lookup may be
// in progress at any time. Each slot is a sequence lock: its version is odd while it changes, and a
// reader checks the version before and after it reads the fields. If the slot changed meanwhile,
// the reader discards the values.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace unisono::shm {

struct SharedRegion {
  const std::byte* base = nullptr;
  // Address at which other ranks of this process read a region of this rank.
  const std::byte* in_process = nullptr;
  std::size_t bytes = 0;
  std::uint32_t number = 0;
  int owner = -1;  // world rank
};

class RegionTable {
 public:
  // One thread at a time adds and removes. add() may throw bad_alloc.
  void add(const SharedRegion& region) {
    Block* block = &first_;
    for (;; block = block->next.get()) {
      for (Slot& slot : block->slots) {
        if (slot.bytes.load(std::memory_order_relaxed) == 0) {
          slot.set(region);
          block->used.store(true, std::memory_order_release);
          return;
        }
      }
      if (block->next == nullptr) {
        block->next = std::make_unique<Block>();
        block->visible_next.store(block->next.get(), std::memory_order_release);
      }
    }
  }
  void remove(int owner, std::uint32_t number) noexcept {
    for (Block* block = &first_; block != nullptr; block = block->next.get()) {
      for (Slot& slot : block->slots) {
        const std::optional<SharedRegion> region = slot.get();
        if (region && region->owner == owner && region->number == number) {
          slot.set({});
        }
      }
    }
  }

  // Returns the first region that the predicate accepts. Any thread.
  template <typename Predicate>
  std::optional<SharedRegion> find(const Predicate& takes) const noexcept {
    const Block* block = first_.used.load(std::memory_order_acquire) ? &first_ : nullptr;
    for (; block != nullptr; block = block->visible_next.load(std::memory_order_acquire)) {
      for (const Slot& slot : block->slots) {
        const std::optional<SharedRegion> region = slot.get();
        if (region && takes(*region)) {
          return region;
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Slot {
    std::atomic<std::uint32_t> version = 0;
    std::atomic<std::uint32_t> number = 0;
    std::atomic<int> owner = -1;
    std::atomic<const std::byte*> base = nullptr;
    std::atomic<const std::byte*> in_process = nullptr;
    std::atomic<std::size_t> bytes = 0;  // 0: empty

    void set(const SharedRegion& region) noexcept {
      const std::uint32_t before = version.load(std::memory_order_relaxed);
      version.store(before + 1, std::memory_order_relaxed);
      // Each store is a release, so that a reader that sees one of them also sees the odd version.
      number.store(region.number, std::memory_order_release);
      owner.store(region.owner, std::memory_order_release);
      base.store(region.base, std::memory_order_release);
      in_process.store(region.in_process, std::memory_order_release);
      bytes.store(region.bytes, std::memory_order_release);
      version.store(before + 2, std::memory_order_release);
    }
    std::optional<SharedRegion> get() const noexcept {
      const std::uint32_t before = version.load(std::memory_order_acquire);
      const SharedRegion region{.base = base.load(std::memory_order_acquire),
                                .in_process = in_process.load(std::memory_order_acquire),
                                .bytes = bytes.load(std::memory_order_acquire),
                                .number = number.load(std::memory_order_acquire),
                                .owner = owner.load(std::memory_order_acquire)};
      const bool changed = before % 2 != 0 || version.load(std::memory_order_relaxed) != before;
      return changed || region.bytes == 0 ? std::nullopt : std::optional(region);
    }
  };
  struct Block {
    std::array<Slot, 16> slots = {};
    std::atomic<bool> used = false;
    std::unique_ptr<Block> next = nullptr;  // for the one thread that adds
    std::atomic<const Block*> visible_next = nullptr;
  };
  Block first_;
};

}  // namespace unisono::shm
