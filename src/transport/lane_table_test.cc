#include "transport/lane_table.h"

#include <gtest/gtest.h>

#include <new>

namespace unisono::transport {
namespace {

struct NamedLane {
  explicit NamedLane(const LaneKey& name) : key(name) {}
  LaneKey key;
  bool open = false;
};

class Lanes : public ::testing::Test {
 protected:
  using Table = LaneTable<NamedLane>;

  NamedLane* open(std::uint64_t group, std::uint32_t epoch = 0) {
    const LaneKey key{.group = group, .epoch = epoch};
    return table_.open(key, [&key] { return std::make_unique<NamedLane>(key); });
  }
  Table::Outcome find(std::uint64_t group, std::uint32_t epoch = 0) {
    const LaneKey key{.group = group, .epoch = epoch};
    return table_.find(key, lane_, [&key] { return std::make_unique<NamedLane>(key); });
  }

  Table table_;
  NamedLane* lane_ = nullptr;
};

TEST_F(Lanes, AFrameMayComeBeforeItsLaneIsOpened) {
  EXPECT_EQ(find(7), Table::Outcome::found);
  NamedLane* const early = lane_;
  EXPECT_FALSE(early->open);
  EXPECT_EQ(open(7), early);
  EXPECT_TRUE(early->open);
  EXPECT_EQ(table_.in_turn().size(), 1U);
}

TEST_F(Lanes, NotMoreThanTheLimitCollectWhatComesEarly) {
  for (std::uint64_t group = 0; group < kMostEarlyLanes; ++group) {
    ASSERT_EQ(find(group), Table::Outcome::found);
  }
  EXPECT_EQ(find(kMostEarlyLanes), Table::Outcome::too_many);
  EXPECT_EQ(lane_, nullptr);
  EXPECT_EQ(find(3), Table::Outcome::found) << "it is there already";
  table_.remove(open(3));
  EXPECT_EQ(find(kMostEarlyLanes), Table::Outcome::found) << "there is one less";
}

TEST_F(Lanes, AnEarlyLaneThatGoesMakesRoomForAnother) {
  for (std::uint64_t group = 0; group < kMostEarlyLanes; ++group) {
    ASSERT_EQ(find(group), Table::Outcome::found);
  }
  table_.remove(lane_);
  EXPECT_EQ(find(kMostEarlyLanes), Table::Outcome::found);
}

TEST_F(Lanes, FramesOfAClosedLaneAreStale) {
  NamedLane* const lane = open(7);
  ASSERT_EQ(find(7), Table::Outcome::found);
  EXPECT_EQ(table_.remove(lane).get(), lane);
  EXPECT_EQ(find(7), Table::Outcome::stale);
  EXPECT_EQ(lane_, nullptr);
  EXPECT_EQ(table_.stale_frames(), 1U);
  EXPECT_TRUE(table_.in_turn().empty());
}

TEST_F(Lanes, FramesOfAnEarlierEpochAreStale) {
  table_.retire_before(2);
  EXPECT_EQ(find(7, 1), Table::Outcome::stale);
  EXPECT_EQ(find(7, 2), Table::Outcome::found);
}

TEST_F(Lanes, WithoutMemoryThereIsNone) {
  const LaneKey key{.group = 1};
  EXPECT_EQ(table_.open(key, []() -> std::unique_ptr<NamedLane> { return nullptr; }), nullptr);
  const auto throws = []() -> std::unique_ptr<NamedLane> { throw std::bad_alloc(); };
  EXPECT_EQ(table_.find(key, lane_, throws), Table::Outcome::no_memory);
  EXPECT_TRUE(table_.in_turn().empty());
  EXPECT_EQ(find(1), Table::Outcome::found);
}

}  // namespace
}  // namespace unisono::transport
