// Values by item and rank, in one array, for items whose successors wait rank by rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "network_model/simulator/play.h"

namespace unisono::network_model {

template <typename Value>
class OwnEnds {
 public:
  explicit OwnEnds(const Play& play) {
    first_.push_back(0);
    for (std::size_t i = 0; i < play.items.size(); ++i) {
      if (play.is_own_awaited[i]) {
        for (const int actor : play.items[i].actors) {
          ranks_.push_back(play.rank_of_actor[static_cast<std::size_t>(actor)]);
        }
        std::sort(ranks_.begin() + static_cast<std::ptrdiff_t>(first_.back()), ranks_.end());
      }
      first_.push_back(ranks_.size());
    }
    values_.resize(ranks_.size());
  }

  // Returns nullptr if the rank is not in the item, or if nothing waits for its part of the item.
  Value* find(std::size_t item, int rank) {
    const auto begin = ranks_.begin() + static_cast<std::ptrdiff_t>(first_[item]);
    const auto end = ranks_.begin() + static_cast<std::ptrdiff_t>(first_[item + 1]);
    const auto place = std::lower_bound(begin, end, rank);
    return place == end || *place != rank
               ? nullptr
               : &values_[static_cast<std::size_t>(place - ranks_.begin())];
  }

 private:
  std::vector<std::size_t> first_;  // by item: offset of its first rank; one more at the end
  std::vector<int> ranks_;          // ascending within each item
  std::vector<Value> values_;
};

}  // namespace unisono::network_model
