#include "trace/align.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unisono::trace {
namespace {

// Messages in both directions between two clocks, of which the second is `offset` ahead and `drift`
// faster. A message takes 10 us and up to 40 us more, by a fixed pattern.
struct Messages {
  std::vector<ClockBound> at_most;
  std::vector<ClockBound> at_least;
};

Messages messages(double offset, double drift, int count, double every_ns = 1e6) {
  Messages result;
  for (int i = 0; i < count; ++i) {
    const double time = i * every_ns;
    const double difference = offset + drift * time;
    const double there = 10e3 + (i * 7919 % 41) * 1e3;
    const double back = 10e3 + (i * 104729 % 41) * 1e3;
    result.at_most.push_back({.time = time, .bound = difference + there});
    result.at_least.push_back({.time = time, .bound = difference - back});
  }
  return result;
}

TEST(Align, FindsTheOffsetWithinHalfOfTheShortestRoundTrip) {
  const auto [at_most, at_least] = messages(1e12, 0, 500);
  const auto line = align_clocks(at_most, at_least);
  ASSERT_TRUE(line);
  EXPECT_LE(std::abs(line->at(0) - 1e12), line->uncertainty);
  EXPECT_LE(line->uncertainty, 25e3);
}

TEST(Align, TheTruthIsWithinTheUncertaintyAtEveryTime) {
  for (const double drift : {-300e-6, -20e-6, 0.0, 1e-6, 50e-6}) {
    const auto [at_most, at_least] = messages(-5e9, drift, 200);
    const auto line = align_clocks(at_most, at_least);
    ASSERT_TRUE(line);
    for (const double time : {0.0, 50e6, 199e6}) {
      EXPECT_LE(std::abs(line->at(time) - (-5e9 + drift * time)), line->uncertainty + 1) << drift;
    }
    EXPECT_NEAR(line->drift, drift, 200e-6);
    EXPECT_LE(line->uncertainty, 60e3);
  }
}

TEST(Align, MessagesOfOneMomentLeaveTheirDistance) {
  const auto line = align_clocks({{.time = 5, .bound = 130}}, {{.time = 5, .bound = 110}});
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->at(5), 120, 0.01);
  EXPECT_NEAR(line->uncertainty, 10, 0.01);
}

TEST(Align, OneDirectionIsNotEnough) {
  EXPECT_FALSE(align_clocks({{.time = 0, .bound = 1}}, {}));
  EXPECT_FALSE(align_clocks({}, {{.time = 0, .bound = 1}}));
}

TEST(Align, MessagesThatArriveBeforeTheyAreSentAreRefused) {
  EXPECT_FALSE(align_clocks({{.time = 0, .bound = 10}}, {{.time = 0, .bound = 20}}));
}

}  // namespace
}  // namespace unisono::trace
