// tree_order: every result is the sum over the fixed tree, and the check rejects other groupings.
#include "schedule/tree_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "schedule/node_sum.h"
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

// Tests both directions: every other algorithm has another order for some shape.
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

// The sum over n * 2^k leaves is the same expression on n ranks as on any other number of ranks
// that divides the leaves in this way, even if the last rank has fewer leaves.
TEST(TreeOrder, ContinuesThatOfTheLeavesOfEachRank) {
  for_each_tree(kMostTreeRanks, [](const Schedule& schedule) {
    const auto ranks = static_cast<std::size_t>(schedule.ranks);
    for (const int leaves : {2, 4}) {
      std::vector<int> each(ranks, leaves);
      EXPECT_TRUE(sums_in_tree_order(schedule, each)) << what(schedule) << " " << leaves;
      each.back() = leaves - 1;
      EXPECT_TRUE(sums_in_tree_order(schedule, each)) << what(schedule) << " " << leaves;
    }
    // Three leaves are not a whole subtree, unless they are the last ones.
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

// The algorithms of this name claim an order of their own.
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

// Exchanges the numbers of two ranks. Every rank still contributes once, but the tree stays the
// same only if the two are leaves of one node.
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

// With neighbouring ranks on hosts of 2^k ranks, a subtree leaves its host only when it is whole: a
// rank sends to another host only sums to which all ranks of its own host have contributed.
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

// Returns the ranks' ranges of leaves: the first split is even, and the later ones are ever more
// random.
std::vector<std::vector<LeafRange>> ranges_of(std::size_t ranks, std::size_t leaves,
                                              std::mt19937& random) {
  std::vector<std::vector<LeafRange>> splits;
  const auto split_at = [&](std::vector<std::size_t> cuts) {
    std::sort(cuts.begin(), cuts.end());
    std::vector<LeafRange> ranges;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ranges.push_back({.first = rank == 0 ? 0 : cuts[rank - 1],
                        .end = rank + 1 == ranks ? leaves : cuts[rank]});
    }
    splits.push_back(ranges);
  };
  std::vector<std::size_t> even;
  std::vector<std::size_t> uneven;  // each rank has a leaf
  std::vector<std::size_t> some;    // ranks may have none
  std::vector<std::size_t> inner(leaves - 1);
  std::iota(inner.begin(), inner.end(), std::size_t{1});
  std::shuffle(inner.begin(), inner.end(), random);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    even.push_back(leaves * rank / ranks);
    uneven.push_back(inner[rank - 1]);
    some.push_back(random() % (leaves + 1));
  }
  split_at(even);
  split_at(uneven);
  split_at(some);
  splits.push_back(splits[1]);  // ranks in another order
  std::shuffle(splits.back().begin(), splits.back().end(), random);
  return splits;
}

std::vector<LeafRange> nodes_of(const std::vector<LeafRange>& ranges, std::size_t leaves) {
  std::vector<LeafRange> nodes;
  for (const LeafRange& range : ranges) {
    const std::vector<LeafRange> more = subtrees_of(leaves, range);
    nodes.insert(nodes.end(), more.begin(), more.end());
  }
  return nodes;
}

// Each node's leaves, and the additions of node numbers in tree order, because expressions list
// leaves only from left to right.
struct OrderedNodes {
  Schedule schedule;
  std::vector<int> leaves;
};
OrderedNodes ordered(const Schedule& schedule, const std::vector<LeafRange>& nodes) {
  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto node = [&](int place) { return nodes[static_cast<std::size_t>(place)]; };
  std::ranges::sort(order, {}, [&](int place) { return node(place).first; });
  OrderedNodes result{.schedule = schedule, .leaves = {}};
  std::vector<int> number(nodes.size());
  for (const int place : order) {
    number[static_cast<std::size_t>(place)] = static_cast<int>(result.leaves.size());
    result.leaves.push_back(static_cast<int>(node(place).end - node(place).first));
  }
  result.schedule.root = number[static_cast<std::size_t>(schedule.root)];
  for (Move& move : result.schedule.moves) {
    move.from = number[static_cast<std::size_t>(move.from)];
    move.to = number[static_cast<std::size_t>(move.to)];
  }
  return result;
}

// Calls visit(schedule, leaves of each node) for n ranks with n to 4n leaves, each split in four
// ways.
template <typename Visit>
void for_each_node_sum(std::size_t most_ranks, const Visit& visit) {
  std::mt19937 random(7);
  for (std::size_t ranks = 1; ranks <= most_ranks; ++ranks) {
    for (std::size_t leaves = ranks; leaves <= 4 * ranks; ++leaves) {
      for (const std::vector<LeafRange>& ranges : ranges_of(ranks, leaves, random)) {
        const std::vector<LeafRange> nodes = nodes_of(ranges, leaves);
        const NodeSum sum = sum_of_nodes(leaves, nodes);
        ASSERT_EQ(sum.kept.size(), 1U);
        EXPECT_EQ(sum.kept.front().first, 0U);
        EXPECT_EQ(sum.kept.front().end, leaves);
        EXPECT_EQ(sum.kept.front().place, static_cast<std::size_t>(sum.schedule.root));
        const OrderedNodes in_order = ordered(sum.schedule, nodes);
        visit(in_order.schedule, in_order.leaves);
      }
    }
  }
}

// TreeSum runs these orders when ranks have arbitrary ranges of leaves.
TEST(TreeOrder, IsTheOrderOfNodesForAnyRangesOfLeaves) {
  int proved = 0;
  for_each_node_sum(kMostTreeRanks, [&](const Schedule& schedule, const std::vector<int>& leaves) {
    EXPECT_TRUE(verify_tree_order(schedule, leaves).empty()) << schedule.ranks << " nodes";
    if (schedule.ranks <= 24) {  // each node once
      EXPECT_TRUE(verify(schedule).empty()) << schedule.ranks << " nodes";
    }
    ++proved;
  });
  EXPECT_EQ(proved, kSanitized ? 3696 : 25'216);
}

// Returns the schedule with one term of an addition added at another place: move `inner` is
// dropped, and move `last` becomes two moves.
Schedule regrouped(const Schedule& schedule, std::size_t inner, std::size_t last) {
  const Move one = schedule.moves[inner];
  const Move two = schedule.moves[last];
  Schedule mutant = schedule;
  mutant.moves.clear();
  const auto add = [&](int from, int to) {
    const auto buffer = [&](int node) {
      return node == schedule.root ? Buffer::output : Buffer::scratch;
    };
    mutant.moves.push_back({.step = static_cast<int>(mutant.moves.size()),
                            .from = from,
                            .to = to,
                            .source = buffer(from),
                            .target = buffer(to),
                            .combine = Combine::reduce});
  };
  for (std::size_t i = 0; i < schedule.moves.size(); ++i) {
    if (i == last && one.to == two.to) {  // (a + b) + c becomes a + (b + c)
      add(two.from, one.from);
      add(one.from, one.to);
    } else if (i == last) {  // a + (b + c) becomes (a + c) + b
      add(one.from, two.to);
      add(two.from, two.to);
    } else if (i != inner) {
      add(schedule.moves[i].from, schedule.moves[i].to);
    }
  }
  return mutant;
}

// Every node is still added once.
TEST(TreeOrder, NodesThatAreRegroupedAreFound) {
  int found = 0;
  for_each_node_sum(12, [&](const Schedule& schedule, const std::vector<int>& leaves) {
    const std::vector<Move>& moves = schedule.moves;
    for (std::size_t last = 0; last < moves.size(); ++last) {
      for (const int term : {moves[last].to, moves[last].from}) {
        // The addition that completed this term, if the term is a sum.
        const auto is_sum = [&](const Move& move) { return move.to == term; };
        const auto end = moves.rend();
        const auto inner = std::find_if(end - static_cast<std::ptrdiff_t>(last), end, is_sum);
        if (inner == end) {
          continue;
        }
        const Schedule mutant =
            regrouped(schedule, static_cast<std::size_t>(end - inner) - 1, last);
        EXPECT_TRUE(verify(mutant).empty()) << schedule.ranks << " nodes, addition " << last;
        EXPECT_FALSE(sums_in_tree_order(mutant, leaves))
            << schedule.ranks << " nodes, addition " << last;
        ++found;
      }
    }
  });
  EXPECT_GT(found, 5000);
}

}  // namespace
}  // namespace unisono
