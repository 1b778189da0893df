#include "network_model/simulator/link_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "network_model/simulator/simulate.h"
#include "topology/presets.h"

namespace unisono::network_model {
namespace {

TEST(LinkWatch, FlowsAtTheSameTimeNeedRoom) {
  const std::vector<double> capacities = {10, 20};
  LinkWatch watch(capacities);
  EXPECT_TRUE(watch.add(0, {.begin_us = 5, .end_us = 8, .bytes_per_us = 10}));
  EXPECT_TRUE(watch.add(0, {.begin_us = 8, .end_us = 9, .bytes_per_us = 10}));
  EXPECT_TRUE(watch.add(0, {.begin_us = 1, .end_us = 5, .bytes_per_us = 10}));  // earlier in time
  EXPECT_FALSE(watch.have_met());
  EXPECT_FALSE(watch.add(0, {.begin_us = 4, .end_us = 6, .bytes_per_us = 1}));
  EXPECT_TRUE(watch.have_met());
  EXPECT_TRUE(watch.add(1, {.begin_us = 5, .end_us = 8, .bytes_per_us = 10}));
  EXPECT_TRUE(watch.add(1, {.begin_us = 5, .end_us = 8, .bytes_per_us = 10}));
  EXPECT_FALSE(watch.add(1, {.begin_us = 7, .end_us = 8, .bytes_per_us = 10}));
}

TEST(LinkWatch, WhatItHasForgottenMayBeMet) {
  const std::vector<double> capacities = {10};
  LinkWatch watch(capacities);
  for (int i = 1; i <= 9; ++i) {
    EXPECT_TRUE(watch.add(0, {.begin_us = i * 10.0, .end_us = i * 10.0 + 5, .bytes_per_us = 10}));
  }
  EXPECT_FALSE(watch.add(0, {.begin_us = 2, .end_us = 3, .bytes_per_us = 10}));
  EXPECT_TRUE(watch.add(0, {.begin_us = 16, .end_us = 18, .bytes_per_us = 10}));
}

// The engine that watches links and the engine that shares them compute the same times.
TEST(LinkWatch, GivesTheTimesOfTheOtherEngine) {
  int watched = 0;
  int met = 0;
  for (const std::string name : {"torus:x=3,y=3,z=3", "torus:x=4,y=2,z=2",
                                 "fat_tree:hosts=16,ports=4", "pcie_server:nodes=2"}) {
    const Topology topology = *make_preset(name).value;
    const int ranks = topology.rank_count();
    for (const Algorithm* algorithm : catalog()) {
      if (!can_serve(*algorithm, {.ranks = ranks})) {
        continue;
      }
      for (const int ports : {1, 2, 6}) {
        SCOPED_TRACE(name + " " + std::string(algorithm->name) + " " + std::to_string(ports));
        const Workload workload{.ranks = ranks,
                                .items = {operation(*algorithm, {.ranks = ranks}, 1e5)}};
        const SimulationOptions options{.ports = ports, .gamma_us_per_byte = 1e-6};
        SimulationOptions shared = options;
        shared.contention = Contention::on;
        const SimulationResult found = simulate(workload, topology, options);
        const SimulationResult wanted = simulate(workload, topology, shared);
        if (found.shared_links) {
          ++met;
          continue;
        }
        ++watched;
        EXPECT_NEAR(found.total_us, wanted.total_us, 1e-9 * wanted.total_us);
        ASSERT_EQ(found.ranks.size(), wanted.ranks.size());
        for (std::size_t rank = 0; rank < found.ranks.size(); ++rank) {
          EXPECT_NEAR(found.ranks[rank].moving_us, wanted.ranks[rank].moving_us,
                      1e-9 * wanted.total_us);
        }
      }
    }
  }
  EXPECT_GT(watched, 100);
  EXPECT_GT(met, 50);
}

// 216 ranks with six ports, whose messages never meet: the simulator does not play events one by
// one.
TEST(LinkWatch, ARingOnATorusSharesNoLinks) {
  const Topology topology = *make_preset("torus:x=6,y=6,z=6").value;
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  const Workload workload{.ranks = 216, .items = {operation(ring, {.ranks = 216}, 1e6)}};
  EXPECT_FALSE(simulate(workload, topology, {.ports = 6}).shared_links);
}

}  // namespace
}  // namespace unisono::network_model
