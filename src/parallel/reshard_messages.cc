#include "parallel/reshard_messages.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "parallel/reshard_order.h"
#include "reshard/elements.h"

namespace unisono::parallel {
namespace {

constexpr int kAllRanks = -1;

// A message that passes elements on comes at least this many slots after the one that brings them,
// so that the rank has posted as many other messages when it waits for the elements.
constexpr std::size_t kLead = 4;

class Builder {
 public:
  Builder(const ReshardPlan& plan, int rank, std::size_t message_bytes)
      : plan_(plan),
        rank_(rank),
        message_bytes_(message_bytes),
        slots_(plan.moves.size()),
        busy_{BusySlots(plan.ranks()), BusySlots(plan.ranks())} {}

  ReshardMessages build() {
    int hops = 0;
    for (const ReshardMove& move : plan_.moves) {
      hops = std::max(hops, move.hop);
    }
    for (int hop = 0; hop <= hops; ++hop) {
      for (std::size_t i = 0; i < plan_.moves.size(); ++i) {
        if (plan_.moves[i].hop == hop) {
          add(i);
        }
      }
      order(hop);
      if (hop == 0) {
        add_sums();
      }
    }
    std::sort(built_.messages.begin(), built_.messages.end(),
              [](const auto& a, const auto& b) { return a.turn < b.turn; });
    std::stable_sort(built_.sums.begin(), built_.sums.end(),
                     [](const auto& a, const auto& b) { return a.slot < b.slot; });
    return std::move(built_);
  }

 private:
  struct Draft {
    UnorderedMessage order = {};
    std::vector<std::pair<std::size_t, std::size_t>> contents = {};  // moves, and parts of them
    std::vector<ReshardPart> parts = {};                             // if this rank needs them
  };

  void add(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    if (move.from == move.to) {
      slots_[i] = {0};
      return;
    }
    const bool is_mine = rank_ == kAllRanks || move.from == rank_ || move.to == rank_;
    std::vector<ReshardPart> parts = parts_of(plan_, i, message_bytes_);
    slots_[i].resize(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const auto [place, is_new] = open_.try_emplace({move.from, move.to}, drafts_.size());
      if (is_new || drafts_[place->second].order.bytes + parts[k].bytes > message_bytes_) {
        place->second = drafts_.size();
        drafts_.push_back({.order = {.from = move.from, .to = move.to}});
      }
      Draft& draft = drafts_[place->second];
      if (move.hop > 0) {
        const auto& before = slots_[move.after];
        draft.order.ready =
            std::max(draft.order.ready, before[std::min(k, before.size() - 1)] + kLead);
      }
      draft.order.bytes += parts[k].bytes;
      draft.contents.emplace_back(i, k);
      if (is_mine) {
        draft.parts.push_back(std::move(parts[k]));
      }
    }
  }

  // Gives the messages of a hop their turns. Those within hosts and those between hosts have slots
  // of their own, because they use different links.
  void order(int hop) {
    for (const bool within : {false, true}) {
      std::vector<Draft*> drafts;
      std::vector<UnorderedMessage> messages;
      for (Draft& draft : drafts_) {
        if ((host(draft.order.from) == host(draft.order.to)) == within) {
          drafts.push_back(&draft);
          messages.push_back(draft.order);
        }
      }
      const std::vector<std::size_t> slots = slots_of(messages, busy_[within ? 1 : 0]);
      for (std::size_t m = 0; m < slots.size(); ++m) {
        finish(*drafts[m], {.slot = slots[m], .hop = hop});
      }
    }
    drafts_.clear();
    open_.clear();
  }

  void finish(Draft& draft, ReshardTurn turn) {
    for (const auto& [move, part] : draft.contents) {
      slots_[move][part] = turn.slot;
    }
    if (draft.parts.empty()) {
      return;
    }
    const auto ranks = static_cast<int>(plan_.ranks());
    turn.from = draft.order.from;
    turn.distance = (draft.order.to - draft.order.from + ranks) % ranks;
    built_.messages.push_back({.turn = turn,
                               .to = draft.order.to,
                               .bytes = draft.order.bytes,
                               .parts = std::move(draft.parts)});
  }

  int host(int rank) const { return plan_.hosts[static_cast<std::size_t>(rank)]; }

  // A message that passes a sum on waits for all its summands.
  void add_sums() {
    const auto same = [&](std::size_t a, std::size_t b) {
      const ReshardMove& one = plan_.moves[a];
      const ReshardMove& other = plan_.moves[b];
      return other.summand && one.tensor == other.tensor && one.to == other.to &&
             one.elements == other.elements;
    };
    for (std::size_t first = 0; first < plan_.moves.size(); ++first) {
      if (!plan_.moves[first].summand) {
        continue;
      }
      ReshardSum sum{.first = first, .last = first};
      while (sum.last + 1 < plan_.moves.size() && same(first, sum.last + 1)) {
        ++sum.last;
      }
      for (std::size_t i = first; i <= sum.last; ++i) {
        sum.slot = std::max(sum.slot, *std::max_element(slots_[i].begin(), slots_[i].end()));
      }
      slots_[sum.last] = {sum.slot};
      if (plan_.moves[first].to == rank_) {
        const auto self = sum.last + 1;
        sum.into_out = self < plan_.moves.size() && plan_.moves[self].hop == 1 &&
                       plan_.moves[self].after == sum.last && plan_.moves[self].to == rank_;
        built_.sums.push_back(sum);
      }
      first = sum.last;
    }
  }

  const ReshardPlan& plan_;
  int rank_;
  std::size_t message_bytes_;
  std::vector<std::vector<std::size_t>> slots_;      // of each move, when each part has arrived
  std::array<BusySlots, 2> busy_;                    // between hosts, and within them
  std::vector<Draft> drafts_;                        // messages of the hop
  std::map<std::pair<int, int>, std::size_t> open_;  // the draft that a pair fills
  ReshardMessages built_;
};

}  // namespace

std::vector<ReshardPart> parts_of(const ReshardPlan& plan, std::size_t move,
                                  std::size_t message_bytes) {
  const ReshardMove& whole = plan.moves[move];
  const std::size_t bytes = size_of(plan.tensors[whole.tensor].dtype);
  std::vector<ReshardPart> parts;
  std::size_t offset = 0;
  for (ElementRanges& elements : cut(whole.elements, message_bytes / bytes)) {
    const std::size_t size = count_of(elements) * bytes;
    parts.push_back(
        {.move = move, .elements = std::move(elements), .bytes = size, .offset = offset});
    offset += size;
  }
  return parts;
}

ReshardMessages messages_of(const ReshardPlan& plan, int rank) {
  return Builder(plan, rank, kMessageBytes).build();
}

std::vector<ReshardMessage> all_messages_of(const ReshardPlan& plan, std::size_t message_bytes) {
  return Builder(plan, kAllRanks, message_bytes).build().messages;
}

}  // namespace unisono::parallel
