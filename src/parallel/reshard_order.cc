#include "parallel/reshard_order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace unisono::parallel {
namespace {

// Each choice of pairs applies to 1/kChoices of the busiest rank's messages, which bounds the
// number of choices.
constexpr std::size_t kChoices = 256;

class Order {
 public:
  Order(const std::vector<UnorderedMessage>& messages, std::size_t ranks)
      : messages_(messages),
        slots_(messages.size()),
        pair_(messages.size()),
        passed_on_(messages.size()),
        awaited_(messages.size()),
        followers_(messages.size()),
        out_(2 * ranks),
        in_(2 * ranks) {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;
    std::array<std::size_t, 2> most = {};  // of pairs between hosts, and of pairs within them
    std::vector<std::size_t> sent(out_.size());
    std::vector<std::size_t> received(in_.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const UnorderedMessage& message = messages[i];
      const std::size_t first = message.within ? ranks : 0;
      const std::size_t from = first + static_cast<std::size_t>(message.from);
      const std::size_t to = first + static_cast<std::size_t>(message.to);
      const auto [place, is_new] = known.try_emplace({from, to}, pairs_.size());
      if (is_new) {
        pairs_.push_back({.from = from, .to = to, .within = message.within});
      }
      pair_[i] = place->second;
      out_[from] += message.bytes;
      in_[to] += message.bytes;
      std::size_t& most_so_far = most[message.within ? 1 : 0];
      most_so_far = std::max({most_so_far, ++sent[from], ++received[to]});
      awaited_[i] = message.after.size();
      for (const std::size_t before : message.after) {
        followers_[before].push_back(i);
      }
    }
    most_ = most[0] > 0 ? most[0] : most[1];
    within_per_slot_ = most[0] > 0 ? (most[1] - 1) / most[0] + 1 : 1;
    for (std::size_t i = messages.size(); i-- > 0;) {
      for (const std::size_t before : messages[i].after) {
        passed_on_[before] = std::max(passed_on_[before], passed_on_[i] + 1);
      }
    }
  }

  std::vector<std::size_t> slots() {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (awaited_[i] == 0) {
        waiting_.emplace(0, i);
      }
    }
    const std::size_t run = std::max<std::size_t>(most_ / kChoices, 1);
    for (std::size_t slot = 0; open_ > 0 || !waiting_.empty();) {
      if (open_ == 0) {
        slot = std::max(slot, waiting_.top().first);
      }
      for (; !waiting_.empty() && waiting_.top().first <= slot; waiting_.pop()) {
        const std::size_t i = waiting_.top().second;
        pairs_[pair_[i]].ready.emplace(passed_on_[i], messages_.size() - i);
        ++open_;
      }
      for (const std::size_t p : choose()) {
        assign(pairs_[p], slot, run);
      }
      slot += run;
    }
    return std::move(slots_);
  }

 private:
  struct Pair {
    std::size_t from = 0;
    std::size_t to = 0;
    bool within = false;
    // Messages by urgency: those passed on most often first, then in list order.
    std::priority_queue<std::pair<std::size_t, std::size_t>> ready = {};
  };

  // Chooses pairs of ranks that share no sender or receiver.
  std::vector<std::size_t> choose() const {
    std::vector<std::tuple<bool, std::size_t, std::size_t>> ready;
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const Pair& pair = pairs_[p];
      if (!pair.ready.empty()) {
        const bool is_passed_on = pair.ready.top().first > 0;
        ready.emplace_back(is_passed_on, std::max(out_[pair.from], in_[pair.to]),
                           pairs_.size() - p);
      }
    }
    std::sort(ready.begin(), ready.end(), std::greater<>());
    std::vector<bool> sends(out_.size());
    std::vector<bool> receives(in_.size());
    std::vector<std::size_t> chosen;
    for (const auto& [is_passed_on, bytes_left, from_end] : ready) {
      const std::size_t p = pairs_.size() - from_end;
      const Pair& pair = pairs_[p];
      if (!sends[pair.from] && !receives[pair.to]) {
        sends[pair.from] = true;
        receives[pair.to] = true;
        chosen.push_back(p);
      }
    }
    return chosen;
  }

  // Assigns the slots of a run to a pair's most urgent messages.
  void assign(Pair& pair, std::size_t slot, std::size_t run) {
    const std::size_t per_slot = pair.within ? within_per_slot_ : 1;
    for (std::size_t k = 0; k < run * per_slot && !pair.ready.empty(); ++k) {
      const std::size_t i = messages_.size() - pair.ready.top().second;
      pair.ready.pop();
      --open_;
      slots_[i] = slot + k / per_slot;
      out_[pair.from] -= messages_[i].bytes;
      in_[pair.to] -= messages_[i].bytes;
      for (const std::size_t follower : followers_[i]) {
        if (--awaited_[follower] == 0) {
          std::size_t last = 0;
          for (const std::size_t before : messages_[follower].after) {
            last = std::max(last, slots_[before]);
          }
          waiting_.emplace(last + kLead, follower);
        }
      }
    }
  }

  const std::vector<UnorderedMessage>& messages_;
  std::vector<std::size_t> slots_;
  std::vector<std::size_t> pair_;                    // by message
  std::vector<std::size_t> passed_on_;               // by message: length of the chain that passes
                                                     // its elements on
  std::vector<std::size_t> awaited_;                 // by message: number of earlier messages
                                                     // without a slot
  std::vector<std::vector<std::size_t>> followers_;  // by message: messages that wait for it
  std::vector<std::size_t> out_;                     // by rank and kind of link: bytes left to send
  std::vector<std::size_t> in_;                      // likewise: bytes left to receive
  std::size_t most_ = 0;                             // the most messages that one rank sends, or
                                                     // receives
  std::size_t within_per_slot_ = 1;                  // messages per slot within a host
  std::vector<Pair> pairs_;
  std::size_t open_ = 0;  // number of ready messages
  // Waiting messages, by the slot in which they become ready.
  std::priority_queue<std::pair<std::size_t, std::size_t>,
                      std::vector<std::pair<std::size_t, std::size_t>>, std::greater<>>
      waiting_;
};

}  // namespace

std::vector<std::size_t> slots_of(const std::vector<UnorderedMessage>& messages,
                                  std::size_t ranks) {
  return Order(messages, ranks).slots();
}

}  // namespace unisono::parallel
