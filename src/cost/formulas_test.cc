// Compares each algorithm's closed formula and lower bound with the cost of its schedule.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "cost/bounds.h"
#include "cost/cost.h"

namespace unisono::cost {
namespace {

constexpr int kMostRanks = 64;
constexpr double kVectorBytes = 1048576;

// Networks limited by latency, by bandwidth and by computation.
constexpr Parameters kNetworks[] = {
    {.floor_s = 0, .alpha_s = 5e-6, .beta_s_per_byte = 8e-11, .gamma_s_per_byte = 1e-11},
    {.floor_s = 2e-6, .alpha_s = 1, .beta_s_per_byte = 1e-12, .gamma_s_per_byte = 1e-13},
    {.floor_s = 0, .alpha_s = 1e-12, .beta_s_per_byte = 1, .gamma_s_per_byte = 1e-6},
    {.floor_s = 0, .alpha_s = 1e-9, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 1e-6},
    {.floor_s = 0, .alpha_s = 1e-3, .beta_s_per_byte = 3e-9, .gamma_s_per_byte = 2e-9},
};

class Formulas : public testing::TestWithParam<const Algorithm*> {
 protected:
  template <typename Visit>
  void for_each_schedule(const Visit& visit) const {
    const Algorithm& algorithm = *GetParam();
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      if (!can_serve(algorithm, {.ranks = ranks})) {
        continue;
      }
      const bool rooted = is_rooted(algorithm.collective);
      for (const int root : {0, ranks / 2, ranks - 1}) {
        for (const AlgorithmParameters& parameters : variants(ranks)) {
          const Shape shape{.ranks = ranks, .root = root, .parameters = parameters};
          if ((root == 0 || rooted) && can_serve(algorithm, shape)) {
            SCOPED_TRACE(full_name(algorithm, shape) + " n=" + std::to_string(ranks) +
                         " root=" + std::to_string(root));
            visit(build_schedule(algorithm, shape));
          }
        }
      }
    }
  }

 private:
  // Returns the default parameters, and other values of the parameters that the algorithm takes.
  static std::vector<AlgorithmParameters> variants(int ranks) {
    std::vector<AlgorithmParameters> result(1);
    const AlgorithmParameters usual = complete(*GetParam(), {.ranks = ranks}).parameters;
    for (const int value : {1, 2, 3, 5, 8}) {
      if (usual.segments > 0) {
        result.push_back({.segments = value});
      }
      if (usual.radix > 0 && value > 1) {
        result.push_back({.radix = value});
      }
      if (usual.aggregate > 0) {
        result.push_back({.aggregate = value});
      }
    }
    if (usual.local != AlgorithmParameters::Levels{}) {
      for (const AlgorithmParameters::Levels& value :
           std::vector<AlgorithmParameters::Levels>{{1}, {2}, {3}, {5}, {8}, {2, 3}, {4, 2, 2}}) {
        result.push_back({.local = value});
      }
    }
    return result;
  }
};

TEST_P(Formulas, AreWhatTheScheduleCosts) {
  ASSERT_NE(GetParam()->cost, nullptr);
  for_each_schedule([&](const Schedule& schedule) {
    for (const Parameters& network : kNetworks) {
      const double time = critical_path(schedule, kVectorBytes, network).time_s(network);
      const double claimed =
          closed_time_s(*GetParam(), shape_of(*GetParam(), schedule), kVectorBytes, network);
      EXPECT_NEAR(claimed, time, 1e-12 * time);
    }
  });
}

TEST_P(Formulas, AreNotBelowTheBoundOfTheirCollective) {
  for_each_schedule([&](const Schedule& schedule) {
    const Bound bound = lower_bound(schedule.collective, schedule.ranks, kVectorBytes);
    for (const Parameters& network : kNetworks) {
      const double time = critical_path(schedule, kVectorBytes, network).time_s(network);
      EXPECT_GE(time * (1 + 1e-12), bound.time_s(network));
    }
    // Each port on its own is another lower bound.
    const Traffic moved = traffic(schedule, kVectorBytes);
    EXPECT_GE(std::max(moved.sent_bytes, moved.received_bytes) * (1 + 1e-12), bound.bytes);
  });
}

std::string name_of(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(to_string(info.param->collective)) + "_" + std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(Catalog, Formulas, testing::ValuesIn(catalog()), name_of);

// The table of Chan et al. for n = 6 and 600 bytes.
TEST(Bounds, AreThoseOfThePaper) {
  const auto expect = [](Collective collective, double messages, double bytes, double reduced) {
    const Bound bound = lower_bound(collective, 6, 600);
    SCOPED_TRACE(to_string(collective));
    EXPECT_DOUBLE_EQ(bound.messages, messages);
    EXPECT_DOUBLE_EQ(bound.bytes, bytes);
    EXPECT_DOUBLE_EQ(bound.reduced_bytes, reduced);
  };
  expect(Collective::broadcast, 3, 600, 0);
  expect(Collective::reduce, 3, 600, 500);
  expect(Collective::scatter, 3, 500, 0);
  expect(Collective::gather_v, 3, 500, 0);
  expect(Collective::all_gather, 3, 500, 0);
  expect(Collective::reduce_scatter, 3, 500, 500);
  expect(Collective::all_reduce, 3, 1000, 500);
  expect(Collective::all_to_all, 3, 500, 0);
  expect(Collective::barrier, 3, 0, 0);
}

TEST(Bounds, AreTheLargestOfTheirTerms) {
  const Bound bound = lower_bound(Collective::all_reduce, 8, 800);
  EXPECT_DOUBLE_EQ(bound.time_s({.alpha_s = 1}), 3);
  EXPECT_DOUBLE_EQ(bound.time_s({.beta_s_per_byte = 1}), 1400);
  EXPECT_DOUBLE_EQ(bound.time_s({.gamma_s_per_byte = 1}), 700);
  EXPECT_DOUBLE_EQ(
      bound.time_s({.floor_s = 5, .alpha_s = 1, .beta_s_per_byte = 2, .gamma_s_per_byte = 1}),
      5 + 2800);
}

TEST(Bounds, OfOneRankAreTheFloor) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const Bound bound = lower_bound(static_cast<Collective>(i), 1, 800);
    EXPECT_EQ(bound.time_s({.floor_s = 2, .alpha_s = 1, .beta_s_per_byte = 1}), 2);
  }
}

}  // namespace
}  // namespace unisono::cost
