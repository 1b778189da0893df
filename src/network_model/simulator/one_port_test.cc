// On a flat one-port network the simulator matches the one-port model: closed formulas, the cost of
// every schedule, and lower bounds. Compact forms match their written-out forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "cost/bounds.h"
#include "network_model/simulator/testing.h"
#include "topology/presets.h"

namespace unisono::network_model {
namespace {

constexpr double kBytes = 1048576;
constexpr double kUs = 1e6;
constexpr cost::Parameters kNetworks[] = {
    {.floor_s = 1e-6, .alpha_s = 5e-6, .beta_s_per_byte = 8e-11, .gamma_s_per_byte = 1e-11},
    {.floor_s = 0, .alpha_s = 1e-6, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 3e-9},
};

class OnePort : public testing::TestWithParam<const Algorithm*> {
 protected:
  template <typename Visit>
  void for_each_schedule(const Visit& visit) const {
    for (int ranks = 1; ranks <= (kSanitized ? 24 : 64); ++ranks) {
      const Shape shape{.ranks = ranks, .root = is_rooted(GetParam()->collective) ? ranks / 3 : 0};
      if (can_serve(*GetParam(), shape)) {
        SCOPED_TRACE("n=" + std::to_string(ranks));
        visit(complete(*GetParam(), shape), build_schedule(*GetParam(), shape));
      }
    }
  }
};

TEST_P(OnePort, TakesWhatTheFormulaSaysAndNotLessThanTheBound) {
  for_each_schedule([](const Shape& shape, const Schedule& schedule) {
    for (const cost::Parameters& network : kNetworks) {
      const double simulated = simulate(one_operation(schedule, kBytes), network).total_us / kUs;
      const double cost = cost::critical_path(schedule, kBytes, network).time_s(network);
      ASSERT_NEAR(simulated, cost, 1e-12 * cost);
      ASSERT_NEAR(simulated, cost::closed_time_s(*GetParam(), shape, kBytes, network),
                  1e-12 * cost);
      const double bound =
          cost::lower_bound(GetParam()->collective, shape.ranks, kBytes).time_s(network);
      ASSERT_GE(simulated * (1 + 1e-12), bound);
    }
  });
}

// Compares with the engine that plays events, on the same network.
TEST_P(OnePort, BothEnginesAgree) {
  for (const int ranks : {1, 2, 3, 5, 8, 13, 16}) {
    const Shape shape{.ranks = ranks};
    if (!can_serve(*GetParam(), shape)) {
      continue;
    }
    SCOPED_TRACE("n=" + std::to_string(ranks));
    const Workload workload = one_operation(build_schedule(*GetParam(), shape), kBytes);
    for (const int ports : {1, 2, 3}) {
      const SimulationResult fixed = simulate(workload, kNetworks[1], {.ports = ports});
      const SimulationResult events =
          simulate(workload, kNetworks[1], {.ports = ports, .contention = Contention::on});
      EXPECT_FALSE(fixed.shared_links);
      EXPECT_TRUE(events.shared_links);
      ASSERT_NEAR(events.total_us, fixed.total_us, 1e-9 * fixed.total_us);
      ASSERT_EQ(events.messages, fixed.messages);
      for (std::size_t rank = 0; rank < fixed.ranks.size(); ++rank) {
        ASSERT_NEAR(events.ranks[rank].moving_us, fixed.ranks[rank].moving_us,
                    1e-9 * fixed.total_us)
            << rank;
      }
    }
  }
}

std::vector<const Algorithm*> with_compact_form() {
  std::vector<const Algorithm*> found;
  std::copy_if(catalog().begin(), catalog().end(), std::back_inserter(found),
               [](const Algorithm* algorithm) { return algorithm->compact != nullptr; });
  return found;
}

class CompactForm : public OnePort {
 protected:
  static void compare(const CompactSchedule& compact, const Schedule& schedule) {
    EXPECT_EQ(compact.collective, schedule.collective);
    EXPECT_EQ(compact.ranks, schedule.ranks);
    EXPECT_EQ(compact.chunks, schedule.chunks);
    auto wanted = messages_by_step(schedule);
    std::size_t step = 0;
    for (const std::vector<CompactMessage>& several : messages_by_step(compact)) {
      for (std::size_t first = 0; first < several.size(); ++step) {
        ASSERT_LT(step, wanted.size());
        ASSERT_LE(first + wanted[step].size(), several.size()) << "step " << step;
        const auto begin = several.begin() + static_cast<std::ptrdiff_t>(first);
        std::vector<CompactMessage> found(begin,
                                          begin + static_cast<std::ptrdiff_t>(wanted[step].size()));
        std::sort(wanted[step].begin(), wanted[step].end());
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found, wanted[step]) << "step " << step;
        first += found.size();
      }
    }
    ASSERT_EQ(step, wanted.size());
  }
};

TEST_P(CompactForm, IsTheSchedule) {
  for_each_schedule([](const Shape& shape, const Schedule& schedule) {
    compare(GetParam()->compact(shape), schedule);
  });
}

TEST_P(CompactForm, IsTheScheduleForAnyGroups) {
  for (const AlgorithmParameters::Levels& local :
       std::vector<AlgorithmParameters::Levels>{{1}, {2}, {3}, {8}, {4, 2}, {3, 2, 2}, {48}}) {
    const Shape shape{.ranks = 48, .parameters = {.local = local}};
    if (complete(*GetParam(), {.ranks = 48}).parameters.local != AlgorithmParameters::Levels{} &&
        can_serve(*GetParam(), shape)) {
      SCOPED_TRACE(full_name(*GetParam(), shape));
      compare(GetParam()->compact(shape), build_schedule(*GetParam(), shape));
    }
  }
}

std::string name_of(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(to_string(info.param->collective)) + "_" + std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, OnePort, testing::ValuesIn(catalog().begin(), catalog().end()),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Catalogue, CompactForm, testing::ValuesIn(with_compact_form()), name_of);

// Returns true if most steps can be skipped.
bool has_long_phases(const Algorithm& algorithm, const Shape& shape) {
  const CompactSchedule compact = algorithm.compact(shape);
  return std::all_of(compact.phases.begin(), compact.phases.end(),
                     [](const CompactPhase& phase) { return phase.steps > 16; });
}

// Skipping steady steps changes nothing: compares with playing every step, with the written-out
// form, and with the event engine.
TEST(Steady, IsExact) {
  const Topology topology = *make_preset("rail_optimised:nodes=32").value;
  const Topology cores = *make_preset("fat_tree:hosts=128,ports=8").value;
  for (const Algorithm* algorithm : with_compact_form()) {
    for (const int ranks : {2, 3, 16, 100, 256}) {
      const Shape shape = complete(*algorithm, {.ranks = ranks});
      if (!can_serve(*algorithm, shape) || (kSanitized && ranks > 100)) {
        continue;
      }
      for (const Topology* on : {&topology, &cores}) {
        if (ranks > on->rank_count()) {
          continue;
        }
        for (const bool with_fault : {false, true}) {
          SimulationOptions options{.gamma_us_per_byte = 1e-6};
          if (with_fault) {
            options.rank_faults.push_back({.rank = ranks / 2, .late_us = 30, .factor = 3});
          }
          SCOPED_TRACE(std::string(to_string(algorithm->collective)) +
                       " n=" + std::to_string(ranks) + " on " + on->name);
          const Workload compact = one_operation(algorithm->compact(shape), 1e7);
          const SimulationResult skipped = simulate(compact, *on, options);
          options.extrapolate = false;
          const SimulationResult played = simulate(compact, *on, options);
          const SimulationResult whole =
              simulate(one_operation(build_schedule(*algorithm, shape), 1e7), *on, options);
          const double tolerance = 1e-12 * played.total_us;
          ASSERT_NEAR(skipped.total_us, played.total_us, tolerance);
          ASSERT_NEAR(whole.total_us, played.total_us, tolerance);
          ASSERT_EQ(skipped.messages, played.messages);
          ASSERT_EQ(whole.messages, played.messages);
          EXPECT_EQ(skipped.critical.messages, played.critical.messages);
          EXPECT_NEAR(skipped.critical.transfer_us, played.critical.transfer_us,
                      1e-9 * played.total_us);
          for (std::size_t rank = 0; rank < played.ranks.size(); ++rank) {
            ASSERT_NEAR(skipped.ranks[rank].moving_us, played.ranks[rank].moving_us,
                        1e-9 * played.total_us);
            ASSERT_NEAR(whole.ranks[rank].moving_us, played.ranks[rank].moving_us,
                        1e-9 * played.total_us);
          }
          if (!played.shared_links && has_long_phases(*algorithm, shape) && !with_fault) {
            EXPECT_LT(skipped.simulated, 0.5 * skipped.messages);
          }
          if (ranks <= 100) {
            options.contention = Contention::on;
            ASSERT_NEAR(simulate(compact, *on, options).total_us, played.total_us,
                        1e-9 * played.total_us);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::network_model
