#include "parallel/reshard_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace unisono::parallel {
namespace {

// A choice of pairs holds for this share of the busiest rank's messages, which bounds the number of
// choices.
constexpr std::size_t kChoices = 256;

struct Pair {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<std::size_t> messages = {};  // by readiness
  std::size_t next = 0;                    // of these, the first one without a slot
};

class Order {
 public:
  Order(const std::vector<UnorderedMessage>& messages, BusySlots& busy)
      : messages_(messages),
        busy_(busy),
        slots_(messages.size()),
        out_(busy.ranks()),
        in_(busy.ranks()) {
    std::map<std::pair<int, int>, std::size_t> known;
    std::vector<std::size_t> sent(busy.ranks());
    std::vector<std::size_t> received(busy.ranks());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const UnorderedMessage& message = messages[i];
      const auto from = static_cast<std::size_t>(message.from);
      const auto to = static_cast<std::size_t>(message.to);
      const auto [place, is_new] = known.try_emplace({message.from, message.to}, pairs_.size());
      if (is_new) {
        pairs_.push_back({.from = from, .to = to});
      }
      pairs_[place->second].messages.push_back(i);
      out_[from] += message.bytes;
      in_[to] += message.bytes;
      most_ = std::max({most_, ++sent[from], ++received[to]});
    }
    for (Pair& pair : pairs_) {
      std::stable_sort(pair.messages.begin(), pair.messages.end(),
                       [&](auto a, auto b) { return messages[a].ready < messages[b].ready; });
    }
  }

  std::vector<std::size_t> slots() {
    const std::size_t run = std::max<std::size_t>(most_ / kChoices, 1);
    for (std::size_t slot = 0; !pairs_.empty();) {
      const std::size_t first_ready = choose(slot);
      if (chosen_.empty()) {
        slot = std::max(first_ready, slot + 1);
        continue;
      }
      for (const std::size_t p : chosen_) {
        assign(pairs_[p], slot, run);
      }
      slot += run;
      std::erase_if(pairs_, [](const Pair& pair) { return pair.next == pair.messages.size(); });
    }
    return std::move(slots_);
  }

 private:
  const UnorderedMessage& next_of(const Pair& pair) const {
    return messages_[pair.messages[pair.next]];
  }

  // Chooses pairs without a rank in common. Returns the first slot for which any pair is ready.
  std::size_t choose(std::size_t slot) {
    using Urgency = std::tuple<std::size_t, std::size_t, std::size_t>;
    std::vector<Urgency> ready;
    std::size_t first_ready = std::numeric_limits<std::size_t>::max();
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const Pair& pair = pairs_[p];
      first_ready = std::min(first_ready, next_of(pair).ready);
      if (next_of(pair).ready <= slot && busy_.is_free(pair.from, pair.to, slot)) {
        const auto [less, more] = std::minmax(out_[pair.from], in_[pair.to]);
        ready.emplace_back(more, less, p);
      }
    }
    std::sort(ready.begin(), ready.end(), [](const Urgency& a, const Urgency& b) {
      return std::tuple(std::get<0>(b), std::get<1>(b), std::get<2>(a)) <
             std::tuple(std::get<0>(a), std::get<1>(a), std::get<2>(b));
    });
    std::vector<bool> sends(out_.size());
    std::vector<bool> receives(in_.size());
    chosen_.clear();
    for (const auto& [more, less, p] : ready) {
      const Pair& pair = pairs_[p];
      if (!sends[pair.from] && !receives[pair.to]) {
        sends[pair.from] = true;
        receives[pair.to] = true;
        chosen_.push_back(p);
      }
    }
    return first_ready;
  }

  // Gives a pair's next messages the slots of a run, as far as they are ready.
  void assign(Pair& pair, std::size_t slot, std::size_t run) {
    for (std::size_t end = slot + run; slot < end && pair.next < pair.messages.size(); ++slot) {
      const UnorderedMessage& message = next_of(pair);
      if (message.ready > slot || !busy_.is_free(pair.from, pair.to, slot)) {
        continue;
      }
      busy_.take(pair.from, pair.to, slot);
      slots_[pair.messages[pair.next++]] = slot;
      out_[pair.from] -= message.bytes;
      in_[pair.to] -= message.bytes;
    }
  }

  const std::vector<UnorderedMessage>& messages_;
  BusySlots& busy_;
  std::vector<std::size_t> slots_;
  std::vector<std::size_t> out_;  // bytes that a rank has left to send
  std::vector<std::size_t> in_;   // and to receive
  std::size_t most_ = 0;          // messages that a rank sends, or receives
  std::vector<Pair> pairs_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

std::vector<std::size_t> slots_of(const std::vector<UnorderedMessage>& messages, BusySlots& busy) {
  return Order(messages, busy).slots();
}

}  // namespace unisono::parallel
