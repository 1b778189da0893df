#include "network_model/simulator/open_blocks.h"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "cost/cost.h"
#include "network_model/simulator/protocols.h"
#include "network_model/simulator/streamed.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

// Makes blocks of a step in which each of three ranks sends to the next one. Records which blocks
// were requested.
class CountingSource : public BlockSource {
 public:
  explicit CountingSource(std::size_t blocks) : blocks_(blocks) {}

  std::size_t count() const override { return blocks_; }
  Size size(std::size_t) const override { return {.messages = 3}; }
  const PlayBlock& block(std::size_t index) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(index);
    }
    block_ = {.phase = static_cast<int>(index)};
    for (int rank = 0; rank < 3; ++rank) {
      block_.add({.from = rank, .to = (rank + 1) % 3}, {});
    }
    return block_;
  }
  const std::vector<bool>& meeting() override { return meeting_; }
  std::vector<std::size_t> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::size_t blocks_;
  PlayBlock block_;
  std::vector<bool> meeting_;
  std::mutex mutex_;  // other threads make blocks
  std::vector<std::size_t> asked_;
};

struct Opened {
  explicit Opened(std::size_t count) : Opened(std::make_shared<CountingSource>(count)) {}
  explicit Opened(std::shared_ptr<CountingSource> counting)
      : source(std::move(counting)),
        item{.actors = {0, 1, 2}, .source = source},
        paths(cost::Parameters{}),
        blocks(item, paths) {
    for (std::size_t actor = 0; actor < 3; ++actor) {
      cursors.emplace_back(blocks, actor, Cursor::Way::sends);
      cursors.emplace_back(blocks, actor, Cursor::Way::receives);
    }
  }

  std::shared_ptr<CountingSource> source;
  PlayItem item;
  PathTable paths;
  OpenBlocks blocks;
  std::vector<Cursor> cursors;
};

TEST(OpenBlocks, AreMadeWhenTheFirstComesAndDroppedWhenTheLastHasLeft) {
  Opened opened(4);
  EXPECT_EQ(opened.blocks.open_count(), 1U);
  EXPECT_LE(opened.source->asked().size(), 2U);  // the next block is made while this one is played
  for (int block = 0; block < 3; ++block) {
    opened.cursors.front().advance();
  }
  EXPECT_EQ(opened.source->asked(), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(opened.blocks.open_count(), 4U);
  for (std::size_t i = 1; i < opened.cursors.size(); ++i) {
    EXPECT_EQ(opened.cursors[i].open().block->phase, 0);
    opened.cursors[i].advance();
  }
  EXPECT_EQ(opened.blocks.open_count(), 3U);
  EXPECT_EQ(opened.source->asked().size(), 4U);  // each is made only once
}

// Makes the second block while an actor is at the first one.
class AheadSource : public CountingSource {
 public:
  explicit AheadSource(bool fails) : CountingSource(3), fails_(fails) {}

  const PlayBlock& block(std::size_t index) override {
    if (index == 1) {
      begun_.count_down();
      if (fails_) {
        throw Error(ErrorCode::usage, "no way");
      }
    }
    return CountingSource::block(index);
  }
  void wait() { begun_.wait(); }

 private:
  bool fails_;
  std::latch begun_{1};
};

TEST(OpenBlocks, TheNextOneIsMadeWithoutBeingAskedForAndMayBeGivenUp) {
  const auto source = std::make_shared<AheadSource>(false);
  const Opened opened(source);
  source->wait();
  EXPECT_EQ(opened.blocks.open_count(), 1U);
}

TEST(OpenBlocks, WhatFailsAheadIsToldToWhoAsksForIt) {
  const auto source = std::make_shared<AheadSource>(true);
  Opened opened(source);
  source->wait();
  EXPECT_THROW(opened.blocks.at(1), Error);
}

TEST(OpenBlocks, AMessageHoldsItsBlock) {
  Opened opened(2);
  opened.blocks.hold(0);
  for (Cursor& cursor : opened.cursors) {
    cursor.advance();
    cursor.advance();
    EXPECT_TRUE(cursor.at_end());
  }
  EXPECT_EQ(opened.blocks.open_count(), 2U);
  opened.blocks.leave(0);
  EXPECT_EQ(opened.blocks.open_count(), 0U);
}

// An operation takes the same protocol however its steps are divided into blocks. With an odd
// number of ranks one rank is idle in each part, so that the busiest ranks of the parts together do
// more than any single rank.
TEST(OpenBlocks, AStepInPartsTakesTheProtocolOfTheWholeStep) {
  const Topology topology = *make_preset("dgx_h100:nodes=2").value;
  const Algorithm* algorithm = find_algorithm(Collective::all_to_all, "pairwise");
  const CompactSchedule schedule = algorithm->compact({.ranks = 9});
  const std::vector<double> slowness(9, 1);
  const std::vector<int> actors = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const SimulationOptions options;
  int found_early = 0;
  for (double bytes = 1e3; bytes < 1e9; bytes *= 1.01) {
    PathTable paths(topology, {});
    const BlockMaker maker(actors, slowness, options, paths);
    PlayBlock whole = maker.block_of(schedule, 0, bytes, actors);
    ProtocolChoice of_whole(paths);
    ProtocolChoice of_parts(paths);
    of_whole.add(whole);
    std::vector<PlayBlock> parts;
    std::optional<const Protocol*> early;
    for (int part = 0; part < schedule.phases[0].parts.count; ++part) {
      parts.push_back(maker.part_of(schedule, 0, part, bytes, actors));
      of_parts.add(parts.back());
      ProtocolChoice choice = of_parts;
      early = early || !choice.is_certain(8) ? early : choice.choose(8);  // 8 messages per rank
    }
    ASSERT_EQ(early.value_or(of_whole.choose()), of_whole.choose()) << bytes;
    found_early += early ? 1 : 0;
    ASSERT_EQ(of_parts.choose(), of_whole.choose()) << bytes;
    of_whole.apply(whole);
    std::size_t place = 0;
    for (PlayBlock& part : parts) {
      EXPECT_EQ(part.before, place);
      of_parts.apply(part);
      for (const PlayMessage& message : part.messages) {
        ASSERT_EQ(part.cost_of(message), whole.cost_of(whole.messages[place++]));
      }
    }
    EXPECT_EQ(place, whole.messages.size());
  }
  EXPECT_GT(found_early, 0);
}

}  // namespace
}  // namespace unisono::network_model
