#include "network_model/in_switch.h"

#include <gtest/gtest.h>

#include <string>

#include "network_model/plan_on.h"
#include "topology/presets.h"

namespace unisono::network_model {
namespace {

// Returns switches of `group` ranks each, which reduce at half the bandwidth of 1000 bytes/us.
// Links of 1000 bytes/us from each rank's NIC join the switches.
Topology switches(int count, int group) {
  Topology topology;
  const int spine = add_device(topology, "spine", DeviceKind::network_switch);
  for (int i = 0; i < count; ++i) {
    const std::string name = "s" + std::to_string(i);
    const int middle = add_device(topology, name, DeviceKind::network_switch);
    topology.devices.back().reduces = 0.5;
    for (int r = 0; r < group; ++r) {
      const std::string rank = name + "r" + std::to_string(r);
      topology.ranks.push_back(add_device(topology, rank, DeviceKind::gpu));
      const int nic = add_device(topology, rank + "nic", DeviceKind::nic);
      connect(topology, topology.ranks.back(), middle, 1, 1000);
      connect(topology, topology.ranks.back(), nic, 0, 1000);
      connect(topology, nic, spine, 0, 1000);
    }
  }
  return topology;
}

TEST(InSwitch, EveryLinkCarriesTheVectorAndAPartOfTheSum) {
  Topology topology = switches(1, 8);
  const auto plain = reduce_in_switches(8, 1e6, topology);
  ASSERT_TRUE(plain);
  EXPECT_NEAR(plain->time_s, (1.125e6 / 500 + 2 * 2) * 1e-6, 1e-12);
  EXPECT_EQ(plain->between, "");
  topology.protocols = {{.name = "soon", .start_us = 1, .message_us = 0, .share = 0.25},
                        {.name = "full", .start_us = 20, .message_us = 3, .share = 1}};
  const auto with = reduce_in_switches(8, 1e6, topology);
  ASSERT_TRUE(with);
  EXPECT_NEAR(with->time_s, (20 + 1.125e6 / 500 + 2 * (3 + 2)) * 1e-6, 1e-12);
}

// Two ranks of equal position exchange halves of an eighth each, twice, which is quicker than the
// switch.
TEST(InSwitch, TheSlowerOfSwitchAndNetworkDecides) {
  Topology topology = switches(2, 8);
  const auto inside = reduce_in_switches(16, 1e6, topology);
  ASSERT_TRUE(inside);
  EXPECT_NEAR(inside->time_s, (1.125e6 / 500 + 2 * 2) * 1e-6, 1e-12);
  EXPECT_NE(inside->between, "");
  for (Link& link : topology.links) {
    if (link.latency_us == 0) {
      link.bytes_per_us = 10;  // a slow network
    }
  }
  const auto between = reduce_in_switches(16, 1e6, topology);
  ASSERT_TRUE(between);
  EXPECT_NEAR(between->time_s, (1e6 / 8 / 10 + 2 * 2) * 1e-6, 1e-9);
}

TEST(InSwitch, NeedsRanksOnSwitchesThatReduce) {
  Topology topology = switches(2, 8);
  EXPECT_FALSE(reduce_in_switches(3, 1e6, topology));
  EXPECT_FALSE(reduce_in_switches(12, 1e6, topology));  // 8 ranks and 4 ranks
  topology.devices[1].reduces = 0;
  EXPECT_FALSE(reduce_in_switches(16, 1e6, topology));
  EXPECT_FALSE(reduce_in_switches(8, 1e6, *make_preset("dgx_a100").value));
}

// The published value is 437 GB/s of busbw, which no schedule reaches.
TEST(InSwitch, TwoDgxH100AreMetBetterThanByAnySchedule) {
  const double bytes = 1073741824;
  const Topology two = *make_preset("dgx_h100:nodes=2").value;
  const OnTopology plan =
      plan_on({.collective = Collective::all_reduce, .ranks = 16, .bytes = bytes}, two);
  ASSERT_TRUE(plan.in_switch);
  EXPECT_FALSE(
      plan_on({.collective = Collective::all_gather, .ranks = 16, .bytes = bytes}, two).in_switch);
  const auto busbw = [bytes](double time_s) { return 1e-9 * bytes * 15 / 8 / time_s; };
  EXPECT_NEAR(busbw(plan.in_switch->time_s), 437, 0.1 * 437);
  EXPECT_LT(busbw(plan.rows.front().time_s), 0.75 * 437);
}

}  // namespace
}  // namespace unisono::network_model
