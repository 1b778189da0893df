// A map from numbers to numbers that only grows, in one piece of memory: a third of what nodes of
// their own take, for tables of millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::model {

class NumberMap {
 public:
  // The value of a key, and whether it is new: then it is `fresh`. REQUIRES: keys below 2^64 - 1.
  // The reference is good until the next call.
  std::pair<std::uint32_t&, bool> try_emplace(std::uint64_t key, std::uint32_t fresh) {
    if ((size_ + 1) * 4 > slots_.size() * 3) {
      grow();
    }
    Slot& slot = slots_[place_of(key)];
    const bool is_new = slot.key == kNone;
    if (is_new) {
      ++size_;
      slot = {.key = key, .value = fresh};
    }
    return {slot.value, is_new};
  }

  const std::uint32_t* find(std::uint64_t key) const {
    const Slot* slot = slots_.empty() ? nullptr : &slots_[place_of(key)];
    return slot == nullptr || slot->key == kNone ? nullptr : &slot->value;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = kNone;
    std::uint32_t value = 0;
  };

  // Where the key is, or would be. Keys are mostly sums of multiples of few numbers, which one
  // multiplication would put side by side: SplitMix64 (Steele, Lea, Flood, 2014).
  std::size_t place_of(std::uint64_t key) const {
    std::uint64_t mixed = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    std::size_t place = static_cast<std::size_t>(mixed ^ (mixed >> 31U)) & (slots_.size() - 1);
    while (slots_[place].key != key && slots_[place].key != kNone) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  void grow() {
    constexpr std::size_t kFirst = 16;
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(before.empty() ? kFirst : before.size() * 2, {});
    for (const Slot& slot : before) {
      if (slot.key != kNone) {
        slots_[place_of(slot.key)] = slot;
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
};

}  // namespace unisono::model
