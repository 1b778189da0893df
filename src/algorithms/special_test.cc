// Promises of single algorithms, in addition to the claims that all algorithms make.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "algorithms/catalog.h"
#include "algorithms/shapes.h"
#include "algorithms/two_trees.h"

namespace unisono {
namespace {

using algorithms::ceil_log2;
using algorithms::TwoTrees;

Schedule build(Collective collective, std::string_view name, int ranks, int root = 0) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  return build_schedule(
      algorithm, {.ranks = ranks, .root = root, .parameters = parse_parameters(algorithm, name)});
}

TEST(TwoTrees, HaveEachPositionInsideOneOnly) {
  for (int ranks = 2; ranks <= 200; ++ranks) {
    std::set<int> inside[2];
    for (int tree = 0; tree < 2; ++tree) {
      std::map<int, int> children;
      for (int position = 1; position < ranks; ++position) {
        const int parent = TwoTrees::parent(ranks, tree, position);
        ++children[parent];
        if (parent != 0) {
          inside[tree].insert(parent);
        }
      }
      EXPECT_EQ(children[0], 1);
      for (const auto& [parent, count] : children) {
        EXPECT_LE(count, 2) << ranks << " " << parent;
      }
    }
    for (const int position : inside[0]) {
      EXPECT_FALSE(inside[1].contains(position)) << ranks << " " << position;
    }
  }
}

// The colours guarantee this, for networks with one port.
TEST(TwoTrees, SendAndReceiveOnceInAStep) {
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::all_reduce}) {
    for (int ranks = 2; ranks <= 40; ++ranks) {
      const Schedule schedule = build(collective, "double_tree", ranks);
      std::set<std::tuple<int, int, bool>> busy;
      for (const Move& move : schedule.moves) {
        EXPECT_TRUE(busy.insert({move.step, move.from, true}).second) << ranks;
        EXPECT_TRUE(busy.insert({move.step, move.to, false}).second) << ranks;
      }
    }
  }
}

// Chunks c and c+1 follow chunks 0 and 1 c steps later, for even c.
TEST(TwoTrees, AreAsDeepAsTheyClaim) {
  for (int ranks = 2; ranks <= 5000; ranks += ranks < 1100 ? 1 : 31) {
    const TwoTrees trees(ranks);
    int latest[2] = {-1, -1};
    for (int position = 1; position < ranks; ++position) {
      for (const int tree : {0, 1}) {
        latest[tree] = std::max(latest[tree], trees.arrival(tree, position));
      }
    }
    for (const int segments : {1, 2, 3, 4, 9, 40}) {
      const Shape shape{.ranks = ranks, .parameters = {.segments = segments}};
      const int first = latest[0] + (segments - 1) / 2 * 2;
      const int second = segments == 1 ? 0 : latest[1] + (segments - 2) / 2 * 2;
      ASSERT_EQ(algorithms::two_tree_steps(shape), 1 + std::max(first, second))
          << ranks << " " << segments;
    }
  }
}

TEST(Pat, NeedsLittleScratch) {
  const Algorithm& pat = *find_algorithm(Collective::reduce_scatter, "pat");
  for (int ranks = 2; ranks <= 2000; ranks += ranks < 70 ? 1 : 127) {
    for (const int aggregate : {1, 2, 4, 16}) {
      const Shape shape{.ranks = ranks, .parameters = {.aggregate = aggregate}};
      EXPECT_LE(pat.scratch_chunks(shape), aggregate * ceil_log2(ranks)) << ranks;
    }
  }
}

TEST(Pat, TakesFewestStepsForShortParts) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    EXPECT_EQ(build(Collective::all_gather, "pat:aggregate=32", ranks).steps, ceil_log2(ranks));
    EXPECT_EQ(build(Collective::all_gather, "pat:aggregate=1", ranks).steps, ranks - 1);
  }
}

// Bytes between groups of 4 in 16 ranks, in chunks.
int between_groups(const Schedule& schedule) {
  int chunks = 0;
  for (const Move& move : schedule.moves) {
    chunks += move.from / 4 != move.to / 4 ? move.chunks : 0;
  }
  return chunks;
}

TEST(Hierarchical, SendsTheLeastBetweenGroups) {
  // 16 chunks: every rank sends a quarter of a quarter three times, twice.
  EXPECT_EQ(between_groups(build(Collective::all_reduce, "hierarchical:local=4", 16)), 16 * 6);
  EXPECT_EQ(between_groups(build(Collective::all_gather, "hierarchical:local=4", 16)), 16 * 3);
  EXPECT_EQ(between_groups(build(Collective::reduce_scatter, "hierarchical:local=4", 16)), 16 * 3);
  EXPECT_EQ(between_groups(build(Collective::all_to_all, "hierarchical:local=4", 16)), 16 * 12);
  // 4 chunks go to each of 3 groups once.
  EXPECT_EQ(between_groups(build(Collective::broadcast, "hierarchical:local=4", 16, 5)), 4 * 3);
}

TEST(Hierarchical, RefusesGroupsThatDoNotDivide) {
  const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, "hierarchical");
  EXPECT_TRUE(can_serve(algorithm, {.ranks = 12, .parameters = {.local = {3, 2}}}));
  EXPECT_FALSE(can_serve(algorithm, {.ranks = 12, .parameters = {.local = {5}}}));
  EXPECT_FALSE(can_serve(algorithm, {.ranks = 12, .parameters = {.local = {24}}}));
  EXPECT_FALSE(can_serve(algorithm, {.ranks = 12, .parameters = {.local = {1 << 20, 1 << 20}}}));
}

TEST(Hierarchical, IsBuiltForManyRanks) {
  const Schedule schedule = build(Collective::all_reduce, "hierarchical:local=8", 1 << 15);
  EXPECT_EQ(schedule.steps, 2 * 15);
  EXPECT_EQ(schedule.moves.size(), (std::size_t{1} << 15) * 2 * 15);
}

}  // namespace
}  // namespace unisono
