#include "model/simulator/order.h"

#include <unordered_map>
#include <utility>

#include "model/simulator/program.h"

namespace unisono::model {

Lists::Lists(std::size_t keys, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries)
    : first_(keys + 1), values_(entries.size()) {
  for (const auto& entry : entries) {
    ++first_[entry.first + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) {
    first_[i] += first_[i - 1];
  }
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const auto& [key, value] : entries) {
    values_[next[key]++] = value;
  }
}

std::vector<BlockOrder> orders_of(const PlayItem& item) {
  using Entries = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  std::unordered_map<int, std::uint32_t> place;
  for (const int actor : item.actors) {
    place.emplace(actor, static_cast<std::uint32_t>(place.size()));
  }
  std::vector<BlockOrder> orders;
  std::vector<std::int64_t> received(item.actors.size());
  for (const PlayBlock& block : *item.blocks) {
    Entries sends;
    Entries receives;
    Entries copies;
    Entries needed_by;
    for (std::uint32_t i = 0; i < block.messages.size(); ++i) {
      const PlayMessage& message = block.messages[i];
      const std::uint32_t to = place.at(message.to);
      if (!message.is_local()) {
        sends.emplace_back(place.at(message.from), i);
        receives.emplace_back(to, i);
      } else {
        (block.cost_of(message).reduce_us > 0 ? receives : copies).emplace_back(to, i);
      }
      for (std::size_t need = 0; block.has_needs && need < block.needs_of(i).size(); ++need) {
        needed_by.emplace_back(block.needs_of(i)[need], i);
      }
    }
    BlockOrder order{.sends = Lists(item.actors.size(), sends),
                     .receives = Lists(item.actors.size(), receives),
                     .copies = Lists(item.actors.size(), copies),
                     .needed_by = Lists(block.messages.size(), needed_by),
                     .received_before = received};
    for (std::size_t actor = 0; actor < received.size(); ++actor) {
      received[actor] += block.repeats * static_cast<std::int64_t>(order.receives.of(actor).size());
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

void Cursor::settle() {
  while (block_ < blocks_->size()) {
    const std::size_t size = list().size();
    if (place_ < size) {
      return;
    }
    place_ = 0;
    ++step_;
    if (size == 0 || step_ == (*blocks_)[block_].repeats) {
      step_ = 0;
      ++block_;
    }
  }
}

}  // namespace unisono::model
