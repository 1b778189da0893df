#include "network_model/repeats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cost/choices.h"
#include "network_model/choose.h"
#include "network_model/fit_machine.h"

namespace unisono::network_model {
namespace {

cost::Point timed(const char* algorithm, int ranks, double bytes, double time_s) {
  return {Collective::all_reduce, algorithm, ranks, bytes, time_s};
}

TEST(Repeats, TheQuickestCounts) {
  const auto points = quickest(std::vector{timed("ring", 4, 8, 3e-6), timed("ring", 4, 8, 2e-6),
                                           timed("flat", 4, 8, 1e-6), timed("ring", 4, 8, 9)});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].algorithm, "flat");
  EXPECT_DOUBLE_EQ(points[0].time_s, 1e-6);
  EXPECT_DOUBLE_EQ(points[1].time_s, 2e-6);
}

TEST(Repeats, NoiseIsHowFarTheQuickestIsOffWhereDelaysAreExponential) {
  constexpr double kDelay = 0.3;
  constexpr int kTimes = 6;
  std::mt19937 random(7);
  std::exponential_distribution<double> delay(1 / kDelay);
  std::vector<cost::Point> points;
  for (int size = 1; size <= 200; ++size) {
    for (int time = 0; time < kTimes; ++time) {
      points.push_back(timed("ring", 4, size, 1e-6 * std::exp(delay(random))));
    }
  }
  points.push_back(timed("ring", 4, 1000, 1e-6));  // measured once: may be off by a whole delay
  points.push_back(timed("ring", 2, 1, 1e-6));     // no repeats with two ranks
  const std::vector<cost::Point> found = quickest(points);
  EXPECT_NEAR(typical_noise(found, 4), kDelay / kTimes, 0.3 * kDelay / kTimes);
  EXPECT_NEAR(found.back().noise, kDelay, 0.3 * kDelay);
  EXPECT_EQ(typical_noise(found, 2), 0);
  EXPECT_EQ(typical_noise(found, 8), 0);
}

TEST(Repeats, SayHowMuchLongerTheMedianTakes) {
  std::vector<cost::Point> points;
  for (const double factor : {1.5, 1.0, 2.0}) {
    points.push_back(timed("ring", 4, 8, 1e-6 * factor));
    points.push_back(timed("ring", 4, 64, 3e-6 * factor));
  }
  points.push_back(timed("ring", 4, 128, 1));  // measured once
  EXPECT_DOUBLE_EQ(median_over_quickest(points), 1.5);
  EXPECT_DOUBLE_EQ(median_over_quickest({}), 1);
}

// flat is the built-in algorithm; ring takes 10 % less.
std::vector<cost::Choice> choices_with_noise(double noise) {
  std::vector<cost::Point> points;
  for (double bytes = 8; bytes < 1e6; bytes *= 4) {
    points.push_back(timed("flat", 4, bytes, 1e-5 + 1e-9 * bytes));
    points.push_back(timed("ring", 4, bytes, 0.9 * points.back().time_s));
  }
  for (cost::Point& point : points) {
    point.noise = noise;
  }
  return choose_algorithms(fit_machine(points), [](Collective, int, double) { return "flat"; });
}

TEST(Repeats, AGainThatMayBeNoiseIsNoReasonToChange) {
  EXPECT_EQ(choices_with_noise(0.01).front().algorithm, "ring");
  EXPECT_EQ(choices_with_noise(0.2).front().algorithm, "flat");
}

TEST(Repeats, NoisyTimesAreSmoothed) {
  // One of the times is 7 % off.
  const auto off = [](double noise) {
    std::vector<cost::Point> points;
    for (double bytes = 1024; bytes < 1e7; bytes *= 2) {
      points.push_back(timed("ring", 4, bytes, 1e-5 + 1e-9 * bytes));
      points.back().noise = noise;
    }
    cost::Point& wrong = points[6];
    const double right = wrong.time_s;
    wrong.time_s *= 1.07;
    return fit_machine(points).time_s(Collective::all_reduce, "ring", 4, wrong.bytes) / right - 1;
  };
  EXPECT_GT(off(0), 0.03);  // it may be a bump of this machine
  EXPECT_LT(off(0.1), 0.025);
}

}  // namespace
}  // namespace unisono::network_model
