// A set of ranks for many small groups of a large world. The time to clear the set depends on the
// size of the group, not on the size of the world.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::network_model {

class RankSet {
 public:
  explicit RankSet(int ranks) : met_(static_cast<std::size_t>(ranks)) {}

  // Returns false if the rank was already in the set.
  bool add(int rank) {
    const bool is_new = !met_[static_cast<std::size_t>(rank)];
    met_[static_cast<std::size_t>(rank)] = true;
    return is_new;
  }
  void remove(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      met_[static_cast<std::size_t>(rank)] = false;
    }
  }

 private:
  std::vector<bool> met_;
};

}  // namespace unisono::network_model
