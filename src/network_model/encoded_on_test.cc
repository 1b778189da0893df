// Tests the model of encoded moves: their bytes, and the time of coding.
#include "cost/encoded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/collectives.h"
#include "cost/cost.h"
#include "network_model/hosts_on.h"
#include "network_model/plan_on.h"
#include "network_model/simulate_encoded.h"
#include "network_model/simulator/simulate.h"
#include "schedule/roundings.h"
#include "schedule/verify.h"

namespace unisono::network_model {
namespace {

constexpr double kSlow = 1000;  // bytes per us between nodes: slow, so that encoding pays
constexpr double kFast = 1e9;

// Returns nodes of `ranks` ranks each, on one switch.
Topology of_nodes(int nodes, int ranks, double bytes_per_us) {
  Topology topology;
  topology.overhead_us = 1;
  const int network = add_device(topology, "network", DeviceKind::network_switch);
  for (int node = 0; node < nodes; ++node) {
    const std::string name = "node" + std::to_string(node);
    const int inside = add_device(topology, name, DeviceKind::node);
    const int nic = add_device(topology, name + ".nic", DeviceKind::nic, inside);
    connect(topology, nic, network, 1, bytes_per_us);
    for (int rank = 0; rank < ranks; ++rank) {
      const int core =
          add_device(topology, name + ".rank" + std::to_string(rank), DeviceKind::core, inside);
      connect(topology, core, nic, 0.1, kFast);
      topology.ranks.push_back(core);
    }
  }
  return topology;
}

cost::EncodedAlgorithm flat(Collective collective, const Topology& topology, MoveCode code) {
  const int ranks = topology.rank_count();
  cost::EncodedAlgorithm encoded =
      cost::encode_proved(build_schedule(*find_algorithm(collective, "flat"), {.ranks = ranks}),
                          "flat", hosts_on(topology, ranks), code);
  EXPECT_EQ(encoded.why_not, "");
  return encoded;
}

TEST(EncodedOn, RanksOfANodeAreOnOneHost) {
  const std::vector<int> hosts = hosts_on(of_nodes(2, 3, kSlow), 6);
  EXPECT_EQ(hosts[0], hosts[2]);
  EXPECT_EQ(hosts[3], hosts[5]);
  EXPECT_NE(hosts[0], hosts[3]);
  Topology bare;  // a topology without devices that are hosts
  bare.ranks = {add_device(bare, "a", DeviceKind::core), add_device(bare, "b", DeviceKind::core)};
  EXPECT_NE(hosts_on(bare, 2)[0], hosts_on(bare, 2)[1]);
}

TEST(EncodedOn, BytesAreThoseOfTheCodes) {
  const Topology topology = of_nodes(4, 1, kSlow);
  const Schedule plain =
      build_schedule(*find_algorithm(Collective::all_reduce, "flat"), {.ranks = 4});
  for (const auto& [code, share] : {std::pair(MoveCode::i8, 34.0 / 128), {MoveCode::bf16, 0.5}}) {
    const cost::EncodedAlgorithm encoded = flat(Collective::all_reduce, topology, code);
    ASSERT_NE(encoded.schedule, nullptr);
    EXPECT_EQ(cost::traffic(*encoded.schedule, 1e6).sent_bytes,
              share * cost::traffic(plain, 1e6).sent_bytes);
    EXPECT_EQ(cost::traffic(*encoded.schedule, 1e6).total_bytes,
              share * cost::traffic(plain, 1e6).total_bytes);
    const cost::Parameters network{.alpha_s = 1e-6, .beta_s_per_byte = 1e-9};
    EXPECT_EQ(cost::critical_path(*encoded.schedule, 1e6, network).bytes,
              share * cost::critical_path(plain, 1e6, network).bytes);
  }
}

// The root rounds its own data, so it encodes and decodes; then it encodes again, and the other
// rank decodes.
TEST(EncodedOn, TimeIsThatOfTheCodesAndOfCoding) {
  constexpr double kBytes = 1e6;
  const Topology topology = of_nodes(2, 1, kSlow);
  Workload plain{.ranks = 2};
  plain.items.push_back(
      operation(*find_algorithm(Collective::broadcast, "flat"), {.ranks = 2}, kBytes));
  const double exact = simulate(plain, topology).total_us;
  for (const auto& [code, share] : {std::pair(MoveCode::i8, 34.0 / 128), {MoveCode::bf16, 0.5}}) {
    const double encoded =
        simulate_encoded(flat(Collective::broadcast, topology, code), kBytes, topology, {})
            .total_us;
    EXPECT_NEAR(exact - encoded, (1 - share) * kBytes / kSlow - 4 * kBytes * cost::kCodingUsPerByte,
                1e-6 * exact);
  }
}

bool is_encoded(const std::string& name) {
  return name.find("+i8") != std::string::npos;
}

TEST(EncodedOn, CodesPayWhereTheNetworkIsSlow) {
  const Call call{.collective = Collective::all_reduce, .ranks = 8, .bytes = 64e6};
  const OnTopology slow = plan_on(call, of_nodes(4, 2, kSlow), {.code = MoveCode::i8});
  EXPECT_EQ(slow.rows.front().name, "two_shot+i8");
  const OnTopology fast = plan_on(call, of_nodes(4, 2, kFast), {.code = MoveCode::i8});
  EXPECT_FALSE(is_encoded(fast.rows.front().name)) << fast.rows.front().name;
  const auto rounds_twice = [](const OnTopology::Left& one) {
    return one.name == "ring+i8" && one.why.find("an input is rounded twice") == 0;
  };
  EXPECT_TRUE(std::any_of(slow.left.begin(), slow.left.end(), rounds_twice));
  for (const OnTopology::Row& row : plan_on(call, of_nodes(4, 2, kSlow)).rows) {
    EXPECT_FALSE(is_encoded(row.name));
  }
}

TEST(EncodedOn, EveryCollectiveButScansHasOne) {
  const Topology topology = of_nodes(3, 2, kSlow);
  for (const CollectiveTraits& traits : kCollectives) {
    if (is_v_form(traits.collective) || !moves_data(traits.collective)) {
      continue;
    }
    const auto all =
        cost::encoded_algorithms({.collective = traits.collective}, hosts_on(topology, 6), 1e6);
    const auto proved = std::count_if(all.begin(), all.end(),
                                      [](const auto& one) { return one.schedule != nullptr; });
    EXPECT_EQ(proved > 0, !is_scan(traits.collective)) << traits.name;  // scans cannot be encoded
    for (const cost::EncodedAlgorithm& one : all) {
      if (one.schedule != nullptr) {
        EXPECT_EQ(verify(*one.schedule).size(), 0U) << traits.name << " " << one.title;
        EXPECT_EQ(check_roundings(*one.schedule).size(), 0U) << traits.name << " " << one.title;
      }
    }
  }
}

// At least one algorithm remains for any number of ranks.
TEST(EncodedOn, TheShortestStaysWhereAllHaveTooManyMessages) {
  const Topology topology = of_nodes(3, 2, kSlow);
  for (const Collective collective : {Collective::all_gather, Collective::scatter,
                                      Collective::reduce_scatter, Collective::all_to_all}) {
    const auto all = cost::encoded_algorithms({.collective = collective}, hosts_on(topology, 6), 1);
    const auto proved = std::count_if(all.begin(), all.end(),
                                      [](const auto& one) { return one.schedule != nullptr; });
    EXPECT_EQ(proved, 1) << to_string(collective);
  }
}

}  // namespace
}  // namespace unisono::network_model
