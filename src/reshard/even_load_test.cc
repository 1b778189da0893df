// Tests the most even distribution of loads.
#include "reshard/even_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace unisono::parallel {
namespace {

// Returns the largest average over all sets of ranks.
std::uint64_t by_all_sets(const Loads& loads, unsigned ranks) {
  std::uint64_t most = 0;
  for (unsigned set = 1; set < 1U << ranks; ++set) {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      count += set >> rank & 1U;
    }
    for (const auto& [senders, load] : loads) {
      bytes +=
          std::all_of(senders.begin(), senders.end(),
                      [set](int rank) { return (set >> static_cast<unsigned>(rank) & 1U) > 0; })
              ? load
              : 0;
    }
    most = std::max(most, (bytes + count - 1) / count);
  }
  return most;
}

TEST(EvenLoad, IsTheLargestAverage) {
  EXPECT_EQ(least_busiest({}), 0U);
  EXPECT_EQ(least_busiest({{{0, 1}, 10}, {{1}, 8}}), 9U);
  EXPECT_EQ(least_busiest({{{0, 1}, 4}, {{1}, 8}}), 8U);
  EXPECT_EQ(least_busiest({{{0, 1, 2}, std::uint64_t{1} << 50U}}),
            ((std::uint64_t{1} << 50U) + 2) / 3);
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    constexpr unsigned kRanks = 7;
    Loads loads;
    for (unsigned i = 0, count = 1 + random() % 8; i < count; ++i) {
      std::vector<int> senders;
      for (int rank = 0; rank < static_cast<int>(kRanks); ++rank) {
        if (random() % 3 == 0) {
          senders.push_back(rank);
        }
      }
      if (!senders.empty()) {
        loads[senders] += random() % 1000;
      }
    }
    EXPECT_EQ(least_busiest(loads), by_all_sets(loads, kRanks)) << trial;
  }
}

}  // namespace
}  // namespace unisono::parallel
