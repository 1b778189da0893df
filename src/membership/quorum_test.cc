#include "membership/quorum.h"

#include <gtest/gtest.h>

namespace unisono::comm {
namespace {

constexpr RankStatus kAbsent = RankStatus::absent;
constexpr RankStatus kPresent = RankStatus::present;
constexpr RankStatus kGone = RankStatus::gone;

TEST(Quorum, TheLargerPartGoesOn) {
  EXPECT_TRUE(has_quorum(std::vector{kAbsent, kPresent, kPresent}));
  EXPECT_FALSE(has_quorum(std::vector{kPresent, kAbsent, kAbsent}));
}

TEST(Quorum, OfTwoHalvesTheOneWithTheLowestRank) {
  EXPECT_TRUE(has_quorum(std::vector{kPresent, kAbsent}));
  EXPECT_FALSE(has_quorum(std::vector{kAbsent, kPresent}));
  EXPECT_TRUE(has_quorum(std::vector{kGone, kPresent, kAbsent}));
}

TEST(Quorum, WhoIsProvedGoneDoesNotCount) {
  EXPECT_TRUE(has_quorum(std::vector{kGone, kGone, kGone, kPresent}));
  EXPECT_FALSE(has_quorum(std::vector{kGone, kGone}));
}

// Tries all ways in which a network can separate ranks while each side knows some of the deaths.
TEST(Quorum, NeverTwoWorlds) {
  constexpr int kRanks = 5;
  // A rank is dead or on one of two sides; each side knows of a death or does not.
  constexpr int kWays = 6;  // side a, side b, dead: unknown, known to a, known to b, known to both
  int ways = 1;
  for (int rank = 0; rank < kRanks; ++rank) {
    ways *= kWays;
  }
  int one = 0;
  for (int way = 0; way < ways; ++way) {
    std::vector<RankStatus> a;
    std::vector<RankStatus> b;
    for (int rank = 0, rest = way; rank < kRanks; ++rank, rest /= kWays) {
      const int kind = rest % kWays;
      a.push_back(kind == 0 ? kPresent : kind == 3 || kind == 5 ? kGone : kAbsent);
      b.push_back(kind == 1 ? kPresent : kind == 4 || kind == 5 ? kGone : kAbsent);
    }
    ASSERT_FALSE(has_quorum(a) && has_quorum(b)) << way;
    one += has_quorum(a) || has_quorum(b) ? 1 : 0;
  }
  EXPECT_GT(one, ways / 3);
}

TEST(Quorum, NamesWhoIsMissing) {
  const std::string text = no_quorum(std::vector{kAbsent, kPresent, kAbsent, kAbsent, kGone});
  EXPECT_EQ(text.rfind("1 rank met to continue, without ranks 0, 2, 3, which may be alive", 0), 0U)
      << text;
}

}  // namespace
}  // namespace unisono::comm
