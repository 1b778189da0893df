#include "device/graph.h"

#include <gtest/gtest.h>

#include "algorithms/catalog.h"

namespace unisono::device {
namespace {

Graph graph_of(Collective collective, const char* name, int ranks, const GraphOptions& options) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  return build_graph(build_schedule(algorithm, complete(algorithm, {.ranks = ranks})), options);
}

// Each rank reads all inputs and writes its share of all outputs in one pass, which is the minimum.
TEST(DeviceGraph, AFlatAllReduceIsOnePassARank) {
  const Graph graph = graph_of(Collective::all_reduce, "flat", 4, {});
  for (const RankGraph& rank : graph.ranks) {
    ASSERT_EQ(rank.passes.size(), 1U);
    EXPECT_EQ(rank.passes[0].sources.size(), 4U);
    EXPECT_EQ(rank.passes[0].targets.size(), 4U);
    EXPECT_TRUE(rank.passes[0].finish);
  }
  EXPECT_EQ(graph.slots, 0);
  EXPECT_EQ(graph.staged, 0);
}

TEST(DeviceGraph, AnAllGatherReadsWhereTheInputsAre) {
  const Graph graph = graph_of(Collective::all_gather, "flat", 4, {});
  EXPECT_EQ(graph.pulled, 12);
  EXPECT_EQ(graph.pushed + graph.staged, 0);
  for (const RankGraph& rank : graph.ranks) {
    EXPECT_EQ(rank.passes.size(), 4U);
  }
}

// If other ranks cannot reach inputs, data is staged, and no rank reads another rank's input.
TEST(DeviceGraph, WhatIsNotDirectIsStaged) {
  for (const Algorithm* algorithm : catalog()) {
    const Shape shape = complete(*algorithm, {.ranks = 4});
    if (!can_serve(*algorithm, shape)) {
      continue;
    }
    const Graph graph = build_graph(build_schedule(*algorithm, shape), {.direct = false});
    for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
      for (const GraphPass& pass : graph.ranks[rank].passes) {
        for (const auto* cells : {&pass.sources, &pass.targets}) {
          for (const GraphCell& cell : *cells) {
            EXPECT_TRUE(cell.rank == static_cast<int>(rank) ||
                        cell.place == engine::OperandPlace::scratch)
                << algorithm->name;
          }
        }
      }
    }
  }
}

TEST(DeviceGraph, ARankThatIsWaitedForSignals) {
  for (const Algorithm* algorithm : catalog()) {
    const Shape shape = complete(*algorithm, {.ranks = 5});
    if (!can_serve(*algorithm, shape)) {
      continue;
    }
    const Graph graph = build_graph(build_schedule(*algorithm, shape), {});
    const auto check = [&](std::size_t rank, const std::vector<After>& waits) {
      for (const After& wait : waits) {
        const RankGraph& other = graph.ranks[static_cast<std::size_t>(wait.rank)];
        ASSERT_GE(wait.passes, 1);
        ASSERT_LE(static_cast<std::size_t>(wait.passes), other.passes.size());
        const GraphPass& pass = other.passes[static_cast<std::size_t>(wait.passes) - 1];
        EXPECT_TRUE((pass.signals >> rank & 1U) != 0) << algorithm->name;
      }
    };
    for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
      for (const GraphPass& pass : graph.ranks[rank].passes) {
        check(rank, pass.waits);
      }
      check(rank, graph.ranks[rank].exit);
    }
  }
}

}  // namespace
}  // namespace unisono::device
