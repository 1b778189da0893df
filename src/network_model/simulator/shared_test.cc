// Hand-computed cases of the simulator: shared links, ports, segments, streams, faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "network_model/simulator/testing.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

// Returns hosts on one switch, with 1 us and 1000 bytes/us per link and no overhead.
Topology star(int hosts) {
  Topology topology;
  const int middle = add_device(topology, "switch", DeviceKind::network_switch);
  for (int i = 0; i < hosts; ++i) {
    topology.ranks.push_back(add_device(topology, "h" + std::to_string(i), DeviceKind::node));
    connect(topology, topology.ranks.back(), middle, 1, 1000);
  }
  return topology;
}

// Returns two stars of `hosts` each, joined by a link of 1000 bytes/us.
Topology dumbbell(int hosts) {
  Topology topology;
  const int left = add_device(topology, "left", DeviceKind::network_switch);
  const int right = add_device(topology, "right", DeviceKind::network_switch);
  connect(topology, left, right, 1, 1000);
  for (const int side : {left, right}) {
    for (int i = 0; i < hosts; ++i) {
      topology.ranks.push_back(
          add_device(topology, "h" + std::to_string(topology.ranks.size()), DeviceKind::node));
      connect(topology, topology.ranks.back(), side, 1, 1000);
    }
  }
  return topology;
}

// Returns a schedule of one step with the given messages, of one chunk each.
CompactSchedule messages(int ranks, std::vector<CompactMessage> list, std::int64_t steps = 1) {
  CompactSchedule schedule{.collective = Collective::all_reduce, .ranks = ranks, .chunks = 1};
  schedule.phases.push_back({.name = "p", .steps = steps, .messages = std::move(list)});
  return schedule;
}

// Even an exchange that loads every link of a network equally gains from packets that take all
// routes.
TEST(Shared, AdaptiveRoutesFillAllWays) {
  constexpr double kAll = 16 * 1024 * 1024;
  const Algorithm& pairwise = *find_algorithm(Collective::all_to_all, "pairwise");
  for (const std::string name : {"fat_tree:hosts=16,ports=4", "torus:x=4,y=4,z=1"}) {
    SCOPED_TRACE(name);
    const Topology topology = *make_preset(name).value;
    const Workload workload{.ranks = 16, .items = {operation(pairwise, Shape{.ranks = 16}, kAll)}};
    const SimulationResult fixed = simulate(workload, topology);
    const SimulationResult adaptive =
        simulate(workload, topology, {.routes = RouteChoice::adaptive});
    double fullest = 0;
    double bytes = 0;
    for (const LinkUse& use : adaptive.links) {
      fullest = std::max(fullest, use.full_us);
      bytes += use.bytes;
    }
    double fixed_bytes = 0;
    for (const LinkUse& use : fixed.links) {
      fixed_bytes += use.bytes;
    }
    EXPECT_NEAR(bytes, fixed_bytes, 1);  // all routes are equally long
    EXPECT_LT(adaptive.total_us, 0.75 * fixed.total_us);
    if (name.starts_with("fat_tree")) {  // each step of the exchange is balanced there
      EXPECT_LT(adaptive.total_us, 1.2 * fullest);
    }
  }
}

TEST(Shared, TwoFlowsHalveALink) {
  const Topology topology = dumbbell(2);
  const Workload workload = one_operation(messages(4, {{0, 2, 1, 0}, {1, 3, 1, 0}}), 10000);
  const SimulationResult result = simulate(workload, topology);
  EXPECT_TRUE(result.shared_links);
  EXPECT_DOUBLE_EQ(result.total_us, 3 + 20);
  // 20000 bytes through the middle, busy for 20 us; nothing in the other direction.
  EXPECT_DOUBLE_EQ(result.links[0].bytes, 20000);
  EXPECT_DOUBLE_EQ(result.links[0].busy_us, 20);
  EXPECT_DOUBLE_EQ(result.links[0].full_us, 20);
  EXPECT_DOUBLE_EQ(result.links[1].bytes, 0);
  EXPECT_DOUBLE_EQ(simulate(workload, topology, {.contention = Contention::off}).total_us, 13);
}

// 10000 and 4000 bytes over one link of 1000: 8 us at half speed, then 6000 bytes at full speed.
TEST(Shared, TheSecondHasAllWhenTheFirstIsDone) {
  const Workload workload = one_operation(messages(4, {{0, 2, 10, 0}, {1, 3, 4, 0}}), 1000);
  const SimulationResult result = simulate(workload, dumbbell(2), {.records = 10});
  EXPECT_DOUBLE_EQ(result.total_us, 3 + 8 + 6);
  ASSERT_EQ(result.records.size(), 2U);
  EXPECT_DOUBLE_EQ(result.records[1].end_us, 3 + 8);
  EXPECT_DOUBLE_EQ(result.ranks[1].moving_us, 11);
  EXPECT_DOUBLE_EQ(result.ranks[1].waiting_us, 6);
}

// Three senders, but only two receivers with one port each: the link in the middle has room for
// both.
TEST(Shared, ALinkWithRoomForAllReceiversIsNotShared) {
  Topology topology = dumbbell(3);
  topology.links[0].bytes_per_us = 2000;
  const Workload workload =
      one_operation(messages(6, {{0, 3, 1, 0}, {1, 4, 1, 0}, {2, 3, 1, 0}}), 10000);
  EXPECT_FALSE(simulate(workload, topology).shared_links);
  topology.links[0].bytes_per_us = 1900;
  EXPECT_TRUE(simulate(workload, topology).shared_links);
}

TEST(Shared, BothDirectionsOfALinkAreNotShared) {
  const Workload workload = one_operation(messages(4, {{0, 2, 1, 0}, {3, 1, 1, 0}}), 10000);
  EXPECT_DOUBLE_EQ(simulate(workload, dumbbell(2)).total_us, 13);
}

TEST(Shared, OnePortSendsOneAfterTheOther) {
  const Workload workload = one_operation(messages(3, {{0, 1, 1, 0}, {0, 2, 1, 0}}), 10000);
  const Topology topology = star(3);
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    EXPECT_DOUBLE_EQ(simulate(workload, topology, {.contention = contention}).total_us, 24);
  }
  // Two ports share the only link of rank 0: latencies overlap, transfers do not.
  EXPECT_DOUBLE_EQ(simulate(workload, topology, {.ports = 2}).total_us, 22);
}

TEST(Shared, PortsOfAFlatNetworkHaveTheirOwnSpeed) {
  const Workload workload =
      one_operation(messages(4, {{0, 1, 1, 0}, {0, 2, 1, 0}, {0, 3, 1, 0}}), 10000);
  const cost::Parameters flat{.alpha_s = 2e-6, .beta_s_per_byte = 1e-9};
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    EXPECT_NEAR(simulate(workload, flat, {.ports = 1, .contention = contention}).total_us, 36,
                1e-9);
    EXPECT_NEAR(simulate(workload, flat, {.ports = 2, .contention = contention}).total_us, 24,
                1e-9);
    EXPECT_NEAR(simulate(workload, flat, {.ports = 3, .contention = contention}).total_us, 12,
                1e-9);
  }
}

TEST(Shared, ReductionHoldsTheReceiverAlone) {
  // Ranks 0 and 1 send to rank 2, which reduces: 12 + 10, then 12 + 10. Rank 1 could send at 12.
  const Workload workload = one_operation(messages(3, {{0, 2, 1, 1}, {1, 2, 1, 1}}), 10000);
  const SimulationOptions options{.gamma_us_per_byte = 1e-3};
  const Topology topology = star(3);
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    SimulationOptions with = options;
    with.contention = contention;
    const SimulationResult result = simulate(workload, topology, with);
    EXPECT_DOUBLE_EQ(result.total_us, 44);
    EXPECT_DOUBLE_EQ(result.ranks[0].moving_us, 12);
    EXPECT_DOUBLE_EQ(result.ranks[1].moving_us, 12);
    EXPECT_DOUBLE_EQ(result.ranks[2].moving_us, 44);
    EXPECT_EQ(result.critical.messages, 2);
    EXPECT_DOUBLE_EQ(result.critical.reduce_us, 20);
    EXPECT_DOUBLE_EQ(result.critical.latency_us, 4);
    EXPECT_DOUBLE_EQ(result.critical.transfer_us, 20);
  }
}

// A chain over k hosts with S segments takes k + S - 2 segment times, as the documentation of
// pipelining says.
TEST(Shared, SegmentsPipelineAChain) {
  const Algorithm* chain = find_algorithm(Collective::broadcast, "chain");
  ASSERT_NE(chain, nullptr);
  Schedule schedule = build_schedule(*chain, {.ranks = 5});
  const double chunks = schedule.chunks;
  const Workload workload = one_operation(schedule, 8000 * chunks);
  const cost::Parameters flat{.alpha_s = 1e-6, .beta_s_per_byte = 1e-9};
  // Segments of 1000 bytes cost 1 + 1 us each.
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    const SimulationResult result =
        simulate(workload, flat, {.segment_bytes = 1000, .contention = contention});
    EXPECT_NEAR(result.total_us, 2 * (8 * chunks + 5 - 2), 1e-9);
  }
}

TEST(Shared, RingRunsAtTheSpeedOfItsSlowestLink) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring");
  const int ranks = 6;
  Topology topology = star(ranks);
  const Workload workload = one_operation(ring->compact({.ranks = ranks}), 60000);
  const double steps = 2 * (ranks - 1);
  EXPECT_NEAR(simulate(workload, topology).total_us, steps * (2 + 10), 1e-9);
  // A chunk takes twice as long over the slow link, and all ranks wait for it.
  const SimulationResult worse = simulate(
      workload, topology, {.link_faults = {{.name = "h2->switch", .bandwidth_factor = 0.5}}});
  EXPECT_NEAR(worse.total_us, steps * (2 + 20), 1e-9);
  EXPECT_GT(worse.ranks[0].waiting_us, 0);
  const SimulationResult slower =
      simulate(workload, topology, {.link_faults = {{.name = "h2", .added_latency_us = 5}}});
  EXPECT_NEAR(slower.total_us, steps * (7 + 10), 1e-9);
  EXPECT_THROW(simulate(workload, topology, {.link_faults = {{.name = "h2->h3"}}}), Error);
}

TEST(Shared, AFaultOfANodeHitsWhatIsInside) {
  Topology topology = *make_preset("dgx_h100:nodes=2").value;
  topology.protocols.clear();
  const auto worst = [&](const std::string& name) {
    const Workload workload = one_operation(messages(16, {{0, 1, 1, 0}}), 328e3);
    return simulate(workload, topology, {.link_faults = {{.name = name, .bandwidth_factor = 0.5}}})
        .total_us;
  };
  EXPECT_NEAR(worst("node1"), 0.6 + 1, 1e-9);
  EXPECT_NEAR(worst("node0"), 0.6 + 2, 1e-9);
  EXPECT_NEAR(worst("node0.gpu1"), 0.6 + 2, 1e-9);
}

TEST(Shared, ALateRankHoldsUpTheOthers) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring");
  const Workload workload = one_operation(ring->compact({.ranks = 4}), 4000);
  const double steps = 6;
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    const SimulationResult result =
        simulate(workload, star(4),
                 {.contention = contention, .rank_faults = {{.rank = 1, .late_us = 100}}});
    EXPECT_NEAR(result.total_us, 100 + 3 * steps, 1e-9);
    EXPECT_NEAR(result.ranks[0].waiting_us, 100, 3 * steps);
  }
}

WorkItem compute(std::vector<int> ranks, double us, int stream = 0) {
  return {.ranks = std::move(ranks), .stream = stream, .compute_us = us};
}

WorkItem transfer(std::vector<int> ranks, double bytes, int stream = 0) {
  return {.ranks = std::move(ranks),
          .stream = stream,
          .bytes = bytes,
          .compact = std::make_shared<const CompactSchedule>(messages(2, {{0, 1, 1, 0}}))};
}

TEST(Workloads, ItemsOfARankComeOneAfterTheOther) {
  Workload workload{.ranks = 4};
  workload.items = {compute({0, 1}, 50), transfer({0, 1}, 10000), compute({1}, 7),
                    transfer({2, 3}, 5000)};
  for (const Contention contention : {Contention::automatic, Contention::on}) {
    const SimulationResult result = simulate(workload, star(4), {.contention = contention});
    ASSERT_EQ(result.item_end_us.size(), 4U);
    EXPECT_DOUBLE_EQ(result.item_end_us[0], 50);
    EXPECT_DOUBLE_EQ(result.item_end_us[1], 62);
    EXPECT_DOUBLE_EQ(result.item_end_us[2], 69);
    EXPECT_DOUBLE_EQ(result.item_end_us[3], 7);
    EXPECT_DOUBLE_EQ(result.total_us, 69);
    EXPECT_DOUBLE_EQ(result.ranks[1].computing_us, 57);
    EXPECT_DOUBLE_EQ(result.ranks[1].moving_us, 12);
    EXPECT_DOUBLE_EQ(result.ranks[1].waiting_us, 0);
    EXPECT_DOUBLE_EQ(result.ranks[2].waiting_us, 62);
    EXPECT_DOUBLE_EQ(result.critical.compute_us, 57);
  }
}

TEST(Workloads, StreamsOverlapAndShareTheLink) {
  Workload workload{.ranks = 2};
  workload.items = {compute({0, 1}, 30), transfer({0, 1}, 10000, 1)};
  const SimulationResult overlap = simulate(workload, star(2));
  EXPECT_DOUBLE_EQ(overlap.total_us, 30);
  EXPECT_DOUBLE_EQ(overlap.ranks[0].moving_us, 12);
  EXPECT_DOUBLE_EQ(overlap.ranks[0].waiting_us, 0);
  workload.items = {transfer({0, 1}, 10000, 0), transfer({0, 1}, 10000, 1)};
  EXPECT_DOUBLE_EQ(simulate(workload, star(2)).total_us, 22);
  EXPECT_DOUBLE_EQ(simulate(workload, star(2), {.contention = Contention::off}).total_us, 12);
}

TEST(Workloads, RefuseWhatCannotBe) {
  Workload workload{.ranks = 2};
  workload.items = {compute({2}, 1)};
  EXPECT_THROW(simulate(workload, star(2)), Error);
  workload.items = {compute({0, 0}, 1)};
  EXPECT_THROW(simulate(workload, star(2)), Error);
  workload.items = {transfer({0}, 1)};
  EXPECT_THROW(simulate(workload, star(2)), Error);
  // The short form cannot be segmented, so the simulator would ignore the option.
  workload.items = {transfer({0, 1}, 10000)};
  EXPECT_THROW(simulate(workload, star(2), {.segment_bytes = 1000}), Error);
  workload.items.clear();
  EXPECT_THROW(simulate(workload, star(1)), Error);
  EXPECT_THROW(simulate(workload, star(2), {.ports = 0}), Error);
  EXPECT_THROW(simulate(workload, star(2), {.segment_bytes = NAN}), Error);
  EXPECT_THROW(simulate(workload, star(2), {.jitter = -1}), Error);
  EXPECT_THROW(simulate(workload, star(2), {.rank_faults = {{.late_us = INFINITY}}}), Error);
  EXPECT_EQ(simulate(workload, star(2)).total_us, 0);
}

TEST(Simulation, IsDeterministicAndSeeded) {
  Topology topology = *make_preset("pcie_server:nodes=2").value;
  topology.overhead_us = 2;
  const Algorithm* pairwise = find_algorithm(Collective::all_to_all, "pairwise");
  const Workload workload = one_operation(build_schedule(*pairwise, {.ranks = 16}), 1e6);
  const auto run = [&](std::uint64_t seed) {
    return simulate(workload, topology, {.jitter = 0.5, .seed = seed, .records = 1000});
  };
  const SimulationResult first = run(1);
  const SimulationResult again = run(1);
  EXPECT_TRUE(first.shared_links);
  EXPECT_EQ(first.total_us, again.total_us);
  ASSERT_EQ(first.records.size(), again.records.size());
  for (std::size_t i = 0; i < first.records.size(); ++i) {
    EXPECT_EQ(first.records[i].end_us, again.records[i].end_us);
  }
  EXPECT_NE(first.total_us, run(2).total_us);
}

// The parts of the critical path add up to the total, and its records are in order.
TEST(Simulation, CriticalPathExplainsTheTotal) {
  const Topology topology = *make_preset("dgx_h100:nodes=2").value;
  for (const Algorithm* algorithm : catalog()) {
    if (!can_serve(*algorithm, {.ranks = 16})) {
      continue;
    }
    SCOPED_TRACE(std::string(to_string(algorithm->collective)) + "/" +
                 std::string(algorithm->name));
    const Workload workload = one_operation(build_schedule(*algorithm, {.ranks = 16}), 1e6);
    for (const Contention contention : {Contention::off, Contention::on}) {
      const SimulationResult result =
          simulate(workload, topology,
                   {.gamma_us_per_byte = 1e-5, .contention = contention, .records = 100000});
      const CriticalPath& path = result.critical;
      EXPECT_NEAR(path.latency_us + path.transfer_us + path.reduce_us + path.compute_us,
                  result.total_us, 1e-9 * result.total_us);
      ASSERT_EQ(static_cast<std::int64_t>(result.critical_records.size()), path.messages);
      double last = 0;
      for (const int record : result.critical_records) {
        const MessageRecord& kept = result.records[static_cast<std::size_t>(record)];
        EXPECT_GE(kept.start_us, last);
        EXPECT_GT(kept.end_us, kept.start_us);
        last = kept.start_us;
      }
    }
  }
}

}  // namespace
}  // namespace unisono::network_model
