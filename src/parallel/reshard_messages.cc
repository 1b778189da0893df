#include "parallel/reshard_messages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/reshard_order.h"
#include "reshard/elements.h"

namespace unisono::parallel {
namespace {

constexpr int kAllRanks = -1;

class Builder {
 public:
  Builder(const ReshardPlan& plan, int rank, std::size_t message_bytes)
      : plan_(plan), rank_(rank), message_bytes_(message_bytes), drafts_of_(plan.moves.size()) {}

  ReshardMessages build() {
    int hops = 0;
    for (const ReshardMove& move : plan_.moves) {
      hops = std::max(hops, move.hop);
    }
    for (int hop = 0; hop <= hops; ++hop) {
      for (std::size_t i = 0; i < plan_.moves.size(); ++i) {
        if (plan_.moves[i].hop == hop && plan_.moves[i].from != plan_.moves[i].to) {
          add(i);
        }
      }
      open_.clear();
      if (hop == 0) {
        find_sums();
      }
    }
    finish();
    return std::move(built_);
  }

 private:
  struct Draft {
    int hop = 0;
    std::vector<ReshardPart> parts = {};  // only if this rank needs them
  };

  void add(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    const bool is_mine = rank_ == kAllRanks || move.from == rank_ || move.to == rank_;
    std::vector<ReshardPart> parts = parts_of(plan_, i, message_bytes_);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const auto [place, is_new] = open_.try_emplace({move.from, move.to}, drafts_.size());
      if (is_new || orders_[place->second].bytes + parts[k].bytes > message_bytes_) {
        place->second = drafts_.size();
        drafts_.push_back({.hop = move.hop});
        orders_.push_back(
            {.from = move.from, .to = move.to, .within = host(move.from) == host(move.to)});
      }
      UnorderedMessage& order = orders_[place->second];
      if (move.hop > 0) {
        wait_for(order, move.after, k);
      }
      order.bytes += parts[k].bytes;
      drafts_of_[i].push_back(place->second);
      if (is_mine) {
        drafts_[place->second].parts.push_back(std::move(parts[k]));
      }
    }
  }

  // A message that passes on a part of a move waits for that part, or for all summands of its sum.
  void wait_for(UnorderedMessage& order, std::size_t move, std::size_t part) const {
    const auto sum = sum_ending_.find(move);
    if (sum == sum_ending_.end()) {
      order.after.push_back(drafts_of_[move][part]);
      return;
    }
    for (std::size_t i = built_.sums[sum->second].first; i <= move; ++i) {
      order.after.insert(order.after.end(), drafts_of_[i].begin(), drafts_of_[i].end());
    }
  }

  int host(int rank) const { return plan_.hosts[static_cast<std::size_t>(rank)]; }

  void find_sums() {
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
      const auto self = sum.last + 1;
      sum.into_out = self < plan_.moves.size() && plan_.moves[self].hop == 1 &&
                     plan_.moves[self].after == sum.last &&
                     plan_.moves[self].to == plan_.moves[first].to;
      sum_ending_.emplace(sum.last, built_.sums.size());
      built_.sums.push_back(sum);
      first = sum.last;
    }
  }

  void finish() {
    for (UnorderedMessage& order : orders_) {
      std::sort(order.after.begin(), order.after.end());
      order.after.erase(std::unique(order.after.begin(), order.after.end()), order.after.end());
    }
    const std::vector<std::size_t> slots = slots_of(orders_, plan_.ranks());
    const auto ranks = static_cast<int>(plan_.ranks());
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      if (drafts_[i].parts.empty()) {
        continue;
      }
      const UnorderedMessage& order = orders_[i];
      built_.messages.push_back({.turn = {.slot = slots[i],
                                          .distance = (order.to - order.from + ranks) % ranks,
                                          .from = order.from,
                                          .hop = drafts_[i].hop},
                                 .to = order.to,
                                 .bytes = order.bytes,
                                 .parts = std::move(drafts_[i].parts)});
    }
    std::stable_sort(built_.messages.begin(), built_.messages.end(),
                     [](const auto& a, const auto& b) { return a.turn < b.turn; });
    std::erase_if(built_.sums,
                  [&](const ReshardSum& sum) { return plan_.moves[sum.first].to != rank_; });
    for (ReshardSum& sum : built_.sums) {
      for (std::size_t i = sum.first; i <= sum.last; ++i) {
        for (const std::size_t draft : drafts_of_[i]) {
          sum.slot = std::max(sum.slot, slots[draft]);
        }
      }
    }
    std::stable_sort(built_.sums.begin(), built_.sums.end(),
                     [](const auto& a, const auto& b) { return a.slot < b.slot; });
  }

  const ReshardPlan& plan_;
  int rank_;
  std::size_t message_bytes_;
  std::vector<Draft> drafts_;
  std::vector<UnorderedMessage> orders_;             // by draft
  std::vector<std::vector<std::size_t>> drafts_of_;  // by move and part
  std::map<std::pair<int, int>, std::size_t> open_;  // by pair of ranks: the draft being filled
  std::map<std::size_t, std::size_t> sum_ending_;    // by the last move of a sum: index in
                                                     // built_.sums
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
