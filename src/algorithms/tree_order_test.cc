// tree_order: the expression that every result is, and that another grouping is found.
#include "schedule/tree_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "schedule/verify.h"

namespace unisono {
namespace {

constexpr int kMostTreeRanks = kSanitized ? 24 : 64;
constexpr Collective kSums[] = {Collective::all_reduce, Collective::reduce,
                                Collective::reduce_scatter};

const Algorithm& tree_order(Collective collective) {
  return *find_algorithm(collective, "tree_order");
}

std::string what(const Schedule& schedule) {
  return std::string(to_string(schedule.collective)) + "/" + schedule.algorithm +
         " n=" + std::to_string(schedule.ranks) + " root=" + std::to_string(schedule.root);
}

template <typename Visit>
void for_each_tree(int most, const Visit& visit) {
  for (const Collective collective : kSums) {
    for (int ranks = 1; ranks <= most; ++ranks) {
      for (int root = 0; root < (is_rooted(collective) ? ranks : 1); ++root) {
        visit(build_schedule(tree_order(collective), {.ranks = ranks, .root = root}));
      }
    }
  }
}

// In both directions: every other algorithm has another order for some shape.
TEST(TreeOrder, IsTheOrderOfTheAlgorithmsOfThatName) {
  for_each_tree(kMostTreeRanks, [](const Schedule& schedule) {
    EXPECT_TRUE(sums_in_tree_order(schedule)) << what(schedule);
  });
  for (const Algorithm* algorithm : catalog()) {
    if (!reduces(algorithm->collective) || algorithm->name == "tree_order") {
      continue;
    }
    bool always = true;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      const Shape shape{.ranks = ranks, .root = is_rooted(algorithm->collective) ? ranks - 1 : 0};
      always = always && (!can_serve(*algorithm, shape) ||
                          sums_in_tree_order(build_schedule(*algorithm, shape)));
    }
    EXPECT_FALSE(always) << to_string(algorithm->collective) << "/" << algorithm->name;
  }
}

// The sum over n * 2^k leaves is the same expression on n ranks as on any other number that divides
// them so, also if the last rank has fewer.
TEST(TreeOrder, ContinuesThatOfTheLeavesOfEachRank) {
  for_each_tree(kMostTreeRanks, [](const Schedule& schedule) {
    const auto ranks = static_cast<std::size_t>(schedule.ranks);
    for (const int leaves : {2, 4}) {
      std::vector<int> each(ranks, leaves);
      EXPECT_TRUE(sums_in_tree_order(schedule, each)) << what(schedule) << " " << leaves;
      each.back() = leaves - 1;
      EXPECT_TRUE(sums_in_tree_order(schedule, each)) << what(schedule) << " " << leaves;
    }
    // Three leaves are no whole subtree, unless they are the last.
    EXPECT_EQ(sums_in_tree_order(schedule, std::vector<int>(ranks, 3)), ranks == 1)
        << what(schedule);
  });
}

// Each schedule sums all four ranks.
TEST(TreeOrder, AnotherGroupingIsFoundAndExchangedTermsAreNot) {
  const std::vector<int> leaves(4, 1);
  const auto sums = [&](const std::vector<std::pair<int, int>>& additions) {
    ScheduleBuilder builder{Collective::reduce, {.ranks = 4, .chunks = 1}};
    for (const auto& [from, to] : additions) {
      builder.step();
      builder.move({.from = from, .to = to, .combine = Combine::reduce});
    }
    const Schedule schedule = std::move(builder).build();
    EXPECT_TRUE(verify(schedule).empty());
    return sums_in_tree_order(schedule, leaves);
  };
  EXPECT_TRUE(sums({{1, 0}, {3, 2}, {2, 0}}));
  EXPECT_TRUE(sums({{3, 2}, {1, 0}, {2, 0}}));
  EXPECT_TRUE(sums({{2, 3}, {1, 0}, {3, 0}}));
  EXPECT_FALSE(sums({{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_FALSE(sums({{2, 0}, {3, 1}, {1, 0}}));
  EXPECT_FALSE(sums({{3, 0}, {2, 1}, {1, 0}}));
}

TEST(TreeOrder, SaysWhatTheSumIsInstead) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 4, .chunks = 1}};
  for (const int from : {1, 2, 3}) {
    builder.step();
    builder.move({.from = from, .to = 0, .combine = Combine::reduce});
  }
  const Schedule schedule = std::move(builder).build();
  const std::vector<Finding> findings = verify_tree_order(schedule, std::vector<int>{1, 1, 1, 1});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(sentence(findings.front()),
            "claim: chunk 0 on rank 0 is 3+(2+(0+1)), not the tree over 4 leaves");
  EXPECT_TRUE(verify(schedule).empty());
}

// An order of its own is a claim of the algorithms of this name.
TEST(TreeOrder, IsAClaim) {
  Schedule schedule = build_schedule(tree_order(Collective::all_reduce), {.ranks = 4});
  EXPECT_TRUE(verify_claims(tree_order(Collective::all_reduce), schedule).empty());
  for (Move& move : schedule.moves) {
    for (int* rank : {&move.from, &move.to}) {
      *rank = *rank == 1 ? 2 : *rank == 2 ? 1 : *rank;
    }
  }
  bool found = false;
  for (const Finding& finding : verify_claims(tree_order(Collective::all_reduce), schedule)) {
    found = found || finding.mistake == Finding::Mistake::order;
  }
  EXPECT_TRUE(found);
}

// Renumbers two ranks. Every rank still contributes once, but only two leaves of one node give the
// same tree.
TEST(TreeOrder, RanksThatAreExchangedAreFoundUnlessTheyAreSiblings) {
  int found = 0;
  for (int ranks = 3; ranks <= 12; ++ranks) {
    const Schedule schedule = build_schedule(tree_order(Collective::all_reduce), {.ranks = ranks});
    for (int a = 0; a < ranks; ++a) {
      for (int b = a + 1; b < ranks; ++b) {
        Schedule mutant = schedule;
        for (Move& move : mutant.moves) {
          for (int* rank : {&move.from, &move.to}) {
            *rank = *rank == a ? b : *rank == b ? a : *rank;
          }
        }
        ASSERT_TRUE(verify(mutant).empty()) << ranks << " " << a << " " << b;
        const bool siblings = a % 2 == 0 && b == a + 1;
        EXPECT_EQ(sums_in_tree_order(mutant), siblings) << ranks << " ranks, " << a << " and " << b;
        found += sums_in_tree_order(mutant) ? 0 : 1;
      }
    }
  }
  EXPECT_GT(found, 200);
}

// Between neighbouring ranks on hosts of 2^k, a subtree leaves its host when it is whole: every
// rank then sends to another host what all ranks of its own have contributed to.
TEST(TreeOrder, SubtreesLeaveTheirHostWhole) {
  for (const Collective collective : kSums) {
    for (int ranks = 4; ranks <= 32; ranks += 4) {
      const Schedule schedule = build_schedule(tree_order(collective), {.ranks = ranks});
      std::vector<int> last_inside(static_cast<std::size_t>(ranks / 4), -1);
      std::vector<int> first_between(last_inside.size(), schedule.steps);
      for (const Move& move : schedule.moves) {
        if (move.combine != Combine::reduce) {
          continue;
        }
        const auto host = static_cast<std::size_t>(move.from / 4);
        if (move.from / 4 == move.to / 4) {
          last_inside[host] = std::max(last_inside[host], move.step);
        } else {
          first_between[host] = std::min(first_between[host], move.step);
        }
      }
      for (std::size_t host = 0; host < last_inside.size(); ++host) {
        EXPECT_LT(last_inside[host], first_between[host]) << what(schedule) << " host " << host;
      }
    }
  }
}

}  // namespace
}  // namespace unisono
