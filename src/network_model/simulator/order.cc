#include "network_model/simulator/order.h"

#include <algorithm>

namespace unisono::network_model {

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

OrderMaker::OrderMaker(const std::vector<int>& actors)
    : received_(actors.size()), before_(actors.size()) {
  const auto [least, most] = std::minmax_element(actors.begin(), actors.end());
  first_actor_ = *least;
  places_.resize(static_cast<std::size_t>(*most - *least) + 1);
  for (std::size_t i = 0; i < actors.size(); ++i) {
    places_[static_cast<std::size_t>(actors[i] - first_actor_)] = static_cast<std::uint32_t>(i);
  }
}

BlockOrder OrderMaker::next(const PlayBlock& block) {
  using Entries = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Entries sends;
  Entries receives;
  Entries copies;
  Entries needed_by;
  sends.reserve(block.messages.size());
  receives.reserve(block.messages.size());
  for (std::uint32_t i = 0; i < block.messages.size(); ++i) {
    const PlayMessage& message = block.messages[i];
    const std::uint32_t to = place(message.to);
    if (!message.is_local()) {
      sends.emplace_back(place(message.from), i);
      receives.emplace_back(to, i);
    } else {
      (block.cost_of(message).reduce_us > 0 ? receives : copies).emplace_back(to, i);
    }
    for (std::size_t need = 0; block.has_needs && need < block.needs_of(i).size(); ++need) {
      needed_by.emplace_back(block.needs_of(i)[need], i);
    }
  }
  const std::size_t actors = received_.size();
  BlockOrder order{.sends = Lists(actors, sends),
                   .receives = Lists(actors, receives),
                   .copies = Lists(actors, copies),
                   .needed_by = Lists(block.messages.size(), needed_by),
                   .received_before = before_};
  for (std::size_t actor = 0; actor < actors; ++actor) {
    received_[actor] += block.repeats * static_cast<std::int64_t>(order.receives.of(actor).size());
  }
  if (block.ends_step) {
    before_ = received_;
  }
  return order;
}

}  // namespace unisono::network_model
