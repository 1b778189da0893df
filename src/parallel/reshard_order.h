// The order of a reshard's messages: slots in which each rank sends at most one message and
// receives at most one, so that every receiver has the full bandwidth of its link.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::parallel {

struct UnorderedMessage {
  int from = 0;
  int to = 0;
  std::size_t bytes = 0;
  std::size_t ready = 0;  // the first slot that it may have
};

// Slots in which ranks already send or receive.
class BusySlots {
 public:
  explicit BusySlots(std::size_t ranks) : sends_(ranks), receives_(ranks) {}
  std::size_t ranks() const { return sends_.size(); }
  bool is_free(std::size_t from, std::size_t to, std::size_t slot) const {
    return !has(sends_[from], slot) && !has(receives_[to], slot);
  }
  void take(std::size_t from, std::size_t to, std::size_t slot) {
    put(sends_[from], slot);
    put(receives_[to], slot);
  }

 private:
  static bool has(const std::vector<bool>& slots, std::size_t slot) {
    return slot < slots.size() && slots[slot];
  }
  static void put(std::vector<bool>& slots, std::size_t slot) {
    if (slots.size() <= slot) {
      slots.resize(slot + 1);
    }
    slots[slot] = true;
  }

  std::vector<std::vector<bool>> sends_;
  std::vector<std::vector<bool>> receives_;
};

// Returns the slot of each message, and marks these slots as busy. Ranks with the most left to send
// or receive go first, so that there are few more slots than the busiest rank has messages.
// Messages of one pair of ranks that are ready together keep their order.
std::vector<std::size_t> slots_of(const std::vector<UnorderedMessage>& messages, BusySlots& busy);

}  // namespace unisono::parallel
