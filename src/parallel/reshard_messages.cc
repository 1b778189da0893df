#include "parallel/reshard_messages.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "reshard/elements.h"

namespace unisono::parallel {
namespace {

constexpr int kAllRanks = -1;

class Builder {
 public:
  Builder(const ReshardPlan& plan, int rank, std::size_t message_bytes)
      : plan_(plan), rank_(rank), message_bytes_(message_bytes), slots_(plan.moves.size()) {}

  ReshardMessages build() {
    int hops = 0;
    for (const ReshardMove& move : plan_.moves) {
      hops = std::max(hops, move.hop);
    }
    for (int hop = 0; hop <= hops; ++hop) {
      open_.clear();
      for (std::size_t i = 0; i < plan_.moves.size(); ++i) {
        if (plan_.moves[i].hop == hop) {
          add(i);
        }
      }
      for (auto& [pair, message] : open_) {
        close(message);
      }
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
  void add(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    if (move.from == move.to) {
      slots_[i] = {0};
      return;
    }
    std::vector<ReshardPart> parts = parts_of(plan_, i, message_bytes_);
    slots_[i].resize(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      ReshardMessage& message = open_[{move.from, move.to}];
      if (message.bytes > 0 && message.bytes + parts[k].bytes > message_bytes_) {
        close(message);
      }
      if (move.hop > 0) {
        const auto& before = slots_[move.after];
        message.turn.slot = std::max(message.turn.slot, before[std::min(k, before.size() - 1)] + 1);
      }
      message.turn.from = move.from;
      message.turn.hop = move.hop;
      message.turn.distance =
          (move.to - move.from + static_cast<int>(plan_.ranks())) % static_cast<int>(plan_.ranks());
      message.to = move.to;
      message.bytes += parts[k].bytes;
      message.parts.push_back(std::move(parts[k]));
      waiting_[{move.from, move.to}].push_back({i, k});
    }
  }

  // Gives a message its slot and begins the next one of its pair.
  void close(ReshardMessage& message) {
    if (message.parts.empty()) {
      return;
    }
    auto& waiting = waiting_[{message.turn.from, message.to}];
    for (const auto& [move, part] : waiting) {
      slots_[move][part] = message.turn.slot;
    }
    waiting.clear();
    ReshardMessage next{.turn = {.slot = message.turn.slot + 1, .number = message.turn.number + 1}};
    if (rank_ == kAllRanks || message.turn.from == rank_ || message.to == rank_) {
      built_.messages.push_back(std::move(message));
    }
    message = std::move(next);
  }

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
  std::vector<std::vector<std::size_t>> slots_;  // of each move, when each part has arrived
  std::map<std::pair<int, int>, ReshardMessage> open_;
  std::map<std::pair<int, int>, std::vector<std::pair<std::size_t, std::size_t>>> waiting_;
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
