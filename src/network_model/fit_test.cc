// Tests fitting, from linear algebra up to machines with invented times, whose right answer is
// known.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "cost/machine.h"
#include "network_model/fit_machine.h"
#include "network_model/least_squares.h"
#include "network_model/matrix.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

TEST(Matrix, SolvesAndInverts) {
  Matrix matrix(2);
  matrix.at(0, 0) = 4;
  matrix.at(0, 1) = matrix.at(1, 0) = 2;
  matrix.at(1, 1) = 3;
  const Cholesky solver(matrix);
  ASSERT_TRUE(solver.ok());
  const std::vector<double> x = solver.solve(std::array{10.0, 9.0});
  EXPECT_NEAR(x[0], 1.5, 1e-12);
  EXPECT_NEAR(x[1], 2, 1e-12);
  EXPECT_NEAR(solver.inverse_diagonal()[0], 3.0 / 8, 1e-12);
  EXPECT_NEAR(solver.inverse_diagonal()[1], 4.0 / 8, 1e-12);
}

TEST(Matrix, KnowsWhenItIsNotPositiveDefinite) {
  Matrix matrix(2);
  matrix.at(0, 0) = matrix.at(1, 1) = 1;
  matrix.at(0, 1) = matrix.at(1, 0) = 1;
  EXPECT_FALSE(Cholesky(matrix).ok());
}

TEST(LeastSquares, FindsTheBottomOfACurvedValley) {
  const LeastSquares rosenbrock{.residuals =
                                    [](std::span<const double> x, std::span<double> r) {
                                      r[0] = 10 * (x[1] - x[0] * x[0]);
                                      r[1] = 1 - x[0];
                                    },
                                .count = 2};
  const Minimum minimum = minimise(rosenbrock, std::array{-1.2, 1.0});
  EXPECT_NEAR(minimum.x[0], 1, 1e-4);
  EXPECT_NEAR(minimum.x[1], 1, 1e-4);
}

TEST(LeastSquares, IsNotPulledFarByAnOutlier) {
  const std::array<double, 5> seen = {1.01, 0.99, 1.02, 0.98, 50};
  const LeastSquares mean{.residuals =
                              [&](std::span<const double> x, std::span<double> r) {
                                for (std::size_t i = 0; i < seen.size(); ++i) {
                                  r[i] = (x[0] - seen[i]) / 0.05;
                                }
                              },
                          .count = seen.size()};
  EXPECT_NEAR(minimise(mean, std::array{10.0}).x[0], 1, 0.05);
}

// The times of this machine follow a trend exactly.
const cost::Trend kTrend{.floor_s = 20e-6,
                         .alpha_s = 2e-6,
                         .beta_s_per_byte = 5e-12,
                         .ramp_bytes = 1e5,
                         .restart_s_per_byte = 1e-12,
                         .direct_alpha_s = 1e-6,
                         .direct_beta_s_per_byte = 3e-11};

std::vector<cost::Point> points_of(const cost::Trend& trend, std::span<const int> counts,
                                   int octave_step = 1) {
  std::vector<cost::Point> points;
  for (const int ranks : counts) {
    for (int octave = 10; octave <= 30; octave += octave_step) {
      const double bytes = std::exp2(octave);
      const cost::Work work = cost::work_of(Collective::all_reduce, "", ranks);
      points.push_back({.collective = Collective::all_reduce,
                        .algorithm = "",
                        .ranks = ranks,
                        .bytes = bytes,
                        .time_s = trend.time_s(work, ranks, bytes)});
    }
  }
  return points;
}

double error_at(const cost::Machine& machine, const cost::Trend& truth, Collective collective,
                int ranks, double bytes) {
  const double time = truth.time_s(cost::work_of(collective, "", ranks), ranks, bytes);
  return std::abs(machine.time_s(collective, "", ranks, bytes) / time - 1);
}

TEST(MachineFit, FindsATrendAgainAtOtherSizesRanksAndCollectives) {
  const cost::Machine machine = fit_machine(points_of(kTrend, std::array{2, 4, 8}));
  for (const double bytes : {100.0, 5000.0, 3e5, 7e6, 1e8, 4e9}) {
    EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 4, bytes), 0.02) << bytes;
    EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 6, bytes), 0.03) << bytes;
    EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 16, bytes), 0.1) << bytes;
    EXPECT_LT(error_at(machine, kTrend, Collective::reduce_scatter, 8, bytes), 0.1) << bytes;
  }
}

TEST(MachineFit, SeesASwitchThatReducesInThreeRankCounts) {
  cost::Trend with = kTrend;
  with.has_switch = true;
  with.switch_alpha_s = 5e-6;
  with.switch_beta_s_per_byte = 6e-12;
  const cost::Machine machine = fit_machine(points_of(with, std::array{2, 4, 16}));
  ASSERT_TRUE(machine.trend(Collective::all_reduce, "")->has_switch);
  EXPECT_LT(error_at(machine, with, Collective::all_reduce, 12, 1 << 28), 0.05);
  const cost::Machine blind = fit_machine(points_of(with, std::array{2, 16}));
  EXPECT_FALSE(blind.trend(Collective::all_reduce, "")->has_switch);
}

TEST(MachineFit, IsTheSameEachTime) {
  const std::vector<cost::Point> points = points_of(kTrend, std::array{2, 8});
  const cost::Machine a = fit_machine(points);
  const cost::Machine b = fit_machine(points);
  EXPECT_EQ(a.time_s(Collective::all_reduce, "", 5, 12345),
            b.time_s(Collective::all_reduce, "", 5, 12345));
}

TEST(MachineFit, ExpectsABumpAgainNearIt) {
  std::vector<cost::Point> points = points_of(kTrend, std::array{8}, 2);
  for (cost::Point& point : points) {
    if (point.bytes >= 1 << 18 && point.bytes <= 1 << 22) {
      point.time_s *= 1.3;
    }
  }
  const cost::Machine machine = fit_machine(points);
  const double bumped =
      kTrend.time_s(cost::work_of(Collective::all_reduce, "", 8), 8, 1 << 19) * 1.3;
  EXPECT_NEAR(machine.time_s(Collective::all_reduce, "", 8, 1 << 19) / bumped, 1, 0.1);
  EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 8, 1 << 28), 0.1);
}

TEST(MachineFit, DoesNotExpectADisturbedRunAgain) {
  std::vector<cost::Point> points = points_of(kTrend, std::array{8});
  points[5].time_s *= 4;
  const cost::Machine machine = fit_machine(points);
  EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 8, points[4].bytes), 0.05);
  EXPECT_LT(error_at(machine, kTrend, Collective::all_reduce, 8, points[5].bytes), 0.2);
}

// A library that changes its protocol late: the time jumps between two sizes.
TEST(MachineFit, StaysBetweenTheSizesBesideIt) {
  const std::array<std::pair<double, double>, 5> measured = {
      {{512, 10e-6}, {65536, 12e-6}, {4 << 20, 25e-6}, {16 << 20, 58e-6}, {512 << 20, 700e-6}}};
  std::vector<cost::Point> points;
  for (const auto& [bytes, time] : measured) {
    points.push_back(
        {.collective = Collective::all_gather, .ranks = 4, .bytes = bytes, .time_s = time});
  }
  const cost::Machine machine = fit_machine(points);
  for (std::size_t i = 0; i + 1 < measured.size(); ++i) {
    for (double bytes = measured[i].first * 1.3; bytes < measured[i + 1].first; bytes *= 1.3) {
      const double time = machine.time_s(Collective::all_gather, "", 4, bytes);
      EXPECT_GE(time, measured[i].second * 0.98) << bytes;
      EXPECT_LE(time, measured[i + 1].second * 1.02) << bytes;
    }
  }
}

TEST(MachineFit, KeepsTheAlgorithmsOfTheCatalogueApart) {
  std::vector<cost::Point> points;
  for (const char* name : {"ring", "flat"}) {
    const double slow = name[0] == 'r' ? 2 : 1;
    for (int octave = 3; octave <= 24; ++octave) {
      points.push_back({.collective = Collective::all_reduce,
                        .algorithm = name,
                        .ranks = 4,
                        .bytes = std::exp2(octave),
                        .time_s = slow * (1e-6 + std::exp2(octave) * 2e-10)});
    }
  }
  const cost::Machine machine = fit_machine(points);
  const double ring = machine.time_s(Collective::all_reduce, "ring", 4, 1e5);
  const double flat = machine.time_s(Collective::all_reduce, "flat", 4, 1e5);
  EXPECT_NEAR(flat, 1e-6 + 1e5 * 2e-10, 0.05 * flat);
  EXPECT_NEAR(ring / flat, 2, 0.05);
  EXPECT_FALSE(machine.knows(Collective::all_reduce, ""));
  EXPECT_FALSE(machine.knows(Collective::all_gather, "ring"));
}

TEST(MachineFit, FollowsRanksThatShareCores) {
  // Among 4 ranks every message takes 30 times as long as among 2 ranks, and every byte twice as
  // long.
  std::vector<cost::Point> points;
  for (const int ranks : {2, 4, 8}) {
    for (int octave = 3; octave <= 24; ++octave) {
      const double latency = ranks == 2 ? 0.3e-6 : 9e-6 * ranks / 4;
      const double beta = ranks == 2 ? 1e-10 : 2e-10;
      points.push_back({.collective = Collective::all_reduce,
                        .algorithm = "ring",
                        .ranks = ranks,
                        .bytes = std::exp2(octave),
                        .time_s = latency + beta * std::exp2(octave)});
    }
  }
  const cost::Machine machine = fit_machine(points);
  for (const cost::Point& point : points) {
    const double time = machine.time_s(point.collective, point.algorithm, point.ranks, point.bytes);
    EXPECT_NEAR(time / point.time_s, 1, 0.05) << point.ranks << " " << point.bytes;
  }
}

TEST(MachineFit, TakesOnePointManyPointsAndOneRank) {
  const cost::Point one{
      .collective = Collective::all_reduce, .ranks = 4, .bytes = 1e6, .time_s = 1e-4};
  EXPECT_NEAR(fit_machine({one}).time_s(Collective::all_reduce, "", 4, 1e6), 1e-4, 1e-5);

  std::vector<cost::Point> many;
  for (int i = 1; i <= 450; ++i) {
    many.push_back({.collective = Collective::all_reduce,
                    .ranks = 2 + i % 7,
                    .bytes = i * 1e6,
                    .time_s = 1e-5 + i * 1e-5});
  }
  EXPECT_NEAR(fit_machine(many).time_s(Collective::all_reduce, "", 4, 1.5e8), 1.51e-3, 1e-4);

  const cost::Point alone{
      .collective = Collective::barrier, .ranks = 1, .bytes = 0, .time_s = 1e-6};
  EXPECT_NEAR(fit_machine({alone}).time_s(Collective::barrier, "", 1, 0), 1e-6, 1e-7);
}

TEST(MachineFit, RefusesWhatIsNoMeasurement) {
  const cost::Point good{
      .collective = Collective::all_reduce, .ranks = 4, .bytes = 8, .time_s = 1e-6};
  const auto refused = [&](auto change) {
    cost::Point point = good;
    change(point);
    EXPECT_THROW(fit_machine({good, point}), Error);
  };
  refused([](cost::Point& point) { point.time_s = 0; });
  refused([](cost::Point& point) { point.time_s = std::nan(""); });
  refused([](cost::Point& point) { point.bytes = -1; });
  refused([](cost::Point& point) { point.ranks = 0; });
  refused([](cost::Point& point) { point.algorithm = "no_such"; });
}

}  // namespace
}  // namespace unisono::network_model
