#include "network_model/plan.h"

#include <gtest/gtest.h>

#include <string>

namespace unisono::network_model {
namespace {

constexpr cost::Parameters kNetwork{.floor_s = 0, .alpha_s = 5e-6, .beta_s_per_byte = 8e-11};

Plan plan_of(Collective collective, int ranks, double bytes) {
  return make_plan({.collective = collective, .ranks = ranks, .bytes = bytes}, kNetwork);
}

const Candidate* find(const Plan& plan, std::string_view name) {
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.algorithm->name == name) {
      return &candidate;
    }
  }
  return nullptr;
}

TEST(Plan, PutsTheFastestFirst) {
  const Plan plan = plan_of(Collective::all_reduce, 8, 67108864);
  EXPECT_EQ(plan.candidates.front().algorithm->name, "halving_doubling");
  for (std::size_t i = 1; i < plan.candidates.size(); ++i) {
    EXPECT_GE(plan.candidates[i].time_s, plan.candidates[i - 1].time_s * (1 - 1e-9));
  }
  const Candidate* ring = find(plan, "ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->moved.steps, 14);
  EXPECT_DOUBLE_EQ(ring->moved.sent_bytes, 2.0 * 7 / 8 * 67108864);
  EXPECT_NEAR(ring->time_s, 14 * 5e-6 + 2.0 * 7 / 8 * 67108864 * 8e-11, 1e-12);
  EXPECT_DOUBLE_EQ(plan.bound.bytes, ring->moved.sent_bytes);
}

TEST(Plan, SaysWhyInNumbers) {
  const Plan plan = plan_of(Collective::all_reduce, 8, 67108864);
  const Candidate& best = plan.candidates.front();
  EXPECT_EQ(reason(best, *find(plan, "ring")),
            "same bytes on the critical path as ring, 6 messages in a row instead of 14");
  EXPECT_EQ(reason(best, *find(plan, "recursive_doubling")),
            "42 % less bytes on the critical path than recursive_doubling, 6 messages in a row "
            "instead of 3, "
            "71 % less reduced than there");
  const Plan barrier = plan_of(Collective::barrier, 2, 0);
  EXPECT_EQ(reason(barrier.candidates[0], barrier.candidates[1]), "as many messages");
}

TEST(Plan, FindsTheSizesWhereTheFastestChanges) {
  const Plan plan = plan_of(Collective::all_reduce, 8, 8);
  ASSERT_GE(plan.ranges.size(), 2U);
  EXPECT_EQ(plan.ranges.front().algorithm->name, "recursive_doubling");
  EXPECT_EQ(plan.ranges.front().from_bytes, 0);
  EXPECT_EQ(plan.candidates.front().algorithm->name, "recursive_doubling");
  // The sizes at which 3 alpha + 3 S beta = 6 alpha + 7/4 S beta, if no other range lies between.
  const auto last = std::find_if(
      plan.ranges.begin(), plan.ranges.end(),
      [](const SizeRange& range) { return range.algorithm->name == "halving_doubling"; });
  ASSERT_NE(last, plan.ranges.end());
  if (plan.ranges.size() == 2) {
    EXPECT_NEAR(last->from_bytes / (3 * 5e-6 / (1.25 * 8e-11)), 1, 0.002);
  }
  for (const SizeRange& range : plan.ranges) {
    if (range.from_bytes > 0) {
      EXPECT_EQ(
          plan_of(Collective::all_reduce, 8, range.from_bytes * 1.002).candidates.front().algorithm,
          range.algorithm);
    }
  }
}

TEST(Plan, GoesByClosedFormulasWhereSchedulesAreTooLarge) {
  const Plan plan = plan_of(Collective::all_reduce, 16384, 1 << 30);
  const Candidate* ring = find(plan, "ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_DOUBLE_EQ(ring->cost.messages, 2.0 * 16383);
  EXPECT_EQ(ring->moved.sent_bytes, 0);
  EXPECT_EQ(ring->moved.steps, 2 * 16383);
  EXPECT_TRUE(plan.unable.empty());
}

TEST(Plan, TakesVFormsOneRankAndNoBytes) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const int ranks : {1, 2, 7}) {
      const Plan plan = plan_of(collective, ranks, 0);
      ASSERT_FALSE(plan.candidates.empty()) << to_string(collective);
      EXPECT_GE(plan.candidates.front().time_s, plan.bound.time_s(kNetwork));
    }
  }
  EXPECT_EQ(find(plan_of(Collective::all_to_all_v, 4, 64), "bruck"), nullptr);
  EXPECT_NE(find(plan_of(Collective::all_to_all, 4, 64), "bruck"), nullptr);
}

TEST(BusFactor, IsThatOfTheBenchmarks) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter_v, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1);
}

}  // namespace
}  // namespace unisono::network_model
