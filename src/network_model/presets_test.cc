// Compares the presets' predictions, without measurements, with published times.
#include "topology/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/collectives.h"
#include "base/quantile.h"
#include "network_model/plan_on.h"
#include "network_model/simulator/simulate.h"
#include "network_model/simulator/workload.h"

namespace unisono::network_model {
namespace {

Topology preset(const std::string& name) {
  auto parsed = make_preset(name);
  EXPECT_TRUE(parsed) << parsed.message;
  return *parsed.value;
}

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> result;
  std::stringstream text(line);
  for (std::string field; std::getline(text, field, ',');) {
    result.push_back(field);
  }
  return result;
}

Collective collective_named(const std::string& name) {
  for (const CollectiveTraits& traits : kCollectives) {
    if (traits.name == name) {
      return traits.collective;
    }
  }
  ADD_FAILURE() << name;
  return Collective::barrier;
}

TEST(Presets, PredictPublishedTimesWithoutAFit) {
  const std::map<std::string, std::string> machines = {
      {"a100_sxm", "dgx_a100"}, {"h100_sxm", "dgx_h100"}, {"b200_sxm", "gb200_nvl72"}};
  std::ifstream file(std::string(UNISONO_COLLECTIVES_DATA) + "/measured.csv");
  std::string line;
  std::getline(file, line);
  std::map<std::string, Topology> topologies;
  std::map<std::tuple<std::string, std::string, int, double>, double> predicted;
  std::vector<double> errors;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = fields(line);
    ASSERT_EQ(row.size(), 8U) << line;
    const auto machine = machines.find(row[0]);
    if (machine == machines.end()) {
      continue;
    }
    const Collective collective = collective_named(row[3]);
    const int ranks = std::stoi(row[5]);
    const double bytes = std::stod(row[6]) * (row[4] == "half" ? 2 : 1);
    const auto [topology, is_new] = topologies.try_emplace(machine->second);
    if (is_new) {
      topology->second = preset(machine->second);
    }
    double& time = predicted[{machine->second, row[3], ranks, bytes}];
    if (time == 0) {
      const Call call{.collective = collective, .ranks = ranks, .bytes = bytes};
      const OnTopology plan = plan_on(call, topology->second);
      time = plan.rows.front().time_s * 1e6;
      if (plan.in_switch) {
        time = std::min(time, plan.in_switch->time_s * 1e6);
      }
    }
    errors.push_back(std::abs(time / std::stod(row[7]) - 1));
  }
  EXPECT_GT(errors.size(), 1000U);
  std::printf("presets alone: median %.1f %%, p90 %.1f %%\n", 100 * quantile(errors, 0.5),
              100 * quantile(errors, 0.9));
  EXPECT_LE(quantile(errors, 0.5), 0.15);
  EXPECT_LE(quantile(errors, 0.9), 0.35);
}

// Returns two ranks on one link of 1000 bytes per microsecond.
Topology two_ranks(std::vector<Protocol> protocols) {
  Topology topology;
  for (const char* name : {"a", "b"}) {
    topology.ranks.push_back(add_device(topology, name, DeviceKind::node));
  }
  connect(topology, 0, 1, 2, 1000);
  topology.protocols = std::move(protocols);
  return topology;
}

SimulationResult broadcast_on(const Topology& topology, double bytes) {
  const Algorithm& flat = *find_algorithm(Collective::broadcast, "flat");
  Workload workload{.ranks = 2};
  workload.items.push_back(operation(flat, {.ranks = 2}, bytes));
  return simulate(workload, topology);
}

double time_us(const Topology& topology, double bytes) {
  return broadcast_on(topology, bytes).total_us;
}

TEST(Protocols, AnOperationTakesTheOneThatEndsFirst) {
  const Topology plain = two_ranks({});
  EXPECT_NEAR(time_us(plain, 1e6), 2 + 1000, 1e-9);
  const Topology both = two_ranks({{.name = "soon", .start_us = 5, .message_us = 1, .share = 0.25},
                                   {.name = "full", .start_us = 50, .message_us = 3, .share = 1}});
  EXPECT_NEAR(time_us(both, 0), 5 + 1 + 2, 1e-9);
  EXPECT_NEAR(time_us(both, 1000), 5 + 1 + 2 + 4, 1e-9);
  EXPECT_NEAR(time_us(both, 1e6), 50 + 3 + 2 + 1000, 1e-9);
}

TEST(Protocols, WhatAnOperationTakesToStartIsNoWaiting) {
  const Topology topology =
      two_ranks({{.name = "soon", .start_us = 5, .message_us = 1, .share = 0.25}});
  const SimulationResult result = broadcast_on(topology, 1000);
  EXPECT_EQ(result.protocol.value_or(Protocol()).name, "soon");
  for (const RankTimes& rank : result.ranks) {
    EXPECT_NEAR(rank.starting_us, 5, 1e-9);
    EXPECT_NEAR(rank.moving_us, 1 + 2 + 4, 1e-9);
    EXPECT_NEAR(rank.waiting_us, 0, 1e-9);
  }
  EXPECT_FALSE(broadcast_on(two_ranks({}), 1000).protocol.has_value());
}

}  // namespace
}  // namespace unisono::network_model
