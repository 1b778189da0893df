// Compares the cost model that the runtime library uses to choose between hosts (cost/hosts_time.h)
// with the simulator, which shares links fairly and plays events in time order.
#include "cost/hosts_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "cost/shapes.h"
#include "network_model/plan_on.h"

namespace unisono::network_model {
namespace {

constexpr cost::HostsNetwork kNetwork{.overhead_us = 2,
                                      .inside_us = 0.5,
                                      .inside_bytes_per_us = 8000,
                                      .between_us = 8.5,
                                      .between_bytes_per_us = 3000};
constexpr double kGamma = 1 / 25'000.0;

// Returns a topology with a link from each rank to the port of its host, and a link from each host
// to the network.
Topology topology_of(std::span<const int> hosts) {
  Topology topology;
  topology.overhead_us = kNetwork.overhead_us;
  const int network = add_device(topology, "network", DeviceKind::network_switch);
  std::map<int, int> nics;
  for (const int host : hosts) {
    const std::string name = "host" + std::to_string(host);
    if (!nics.contains(host)) {
      const int node = add_device(topology, name, DeviceKind::node);
      nics[host] = add_device(topology, name + ".nic", DeviceKind::nic, node);
      connect(topology, nics[host], network, (kNetwork.between_us - kNetwork.inside_us) / 2,
              kNetwork.between_bytes_per_us);
    }
    const int nic = nics[host];
    const int core =
        add_device(topology, name + ".rank" + std::to_string(topology.ranks.size()),
                   DeviceKind::core, topology.devices[static_cast<std::size_t>(nic)].inside);
    connect(topology, core, nic, kNetwork.inside_us / 2, kNetwork.inside_bytes_per_us);
    topology.ranks.push_back(core);
  }
  return topology;
}

const std::vector<std::vector<int>> kLayouts = {{0, 1},
                                                {0, 0, 1},
                                                {0, 0, 1, 1},
                                                {0, 1, 0, 1},
                                                {0, 1, 2, 3, 4},
                                                {0, 0, 0, 1, 1, 1, 2, 2},
                                                {0, 0, 0, 0, 1, 1, 1, 1},
                                                {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5},
                                                {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}};
constexpr std::array kCollectives = {
    Collective::broadcast,  Collective::scatter,       Collective::gather,
    Collective::reduce,     Collective::all_reduce,    Collective::all_gather,
    Collective::all_to_all, Collective::barrier,       Collective::reduce_scatter,
    Collective::scan,       Collective::exclusive_scan};

// Returns the time in microseconds by algorithm, without algorithms that have too many messages.
std::map<std::string, double> times_of(const std::vector<int>& hosts, Collective collective,
                                       double bytes) {
  const cost::HostsTime time(kNetwork, hosts);
  const Shape usual{.ranks = static_cast<int>(hosts.size())};
  std::map<std::string, double> times;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != collective || !can_serve(*algorithm, usual)) {
      continue;
    }
    for (const Shape& shape : cost::shapes_on(hosts, *algorithm, usual)) {
      if (const auto us = time.time_us(*algorithm, shape, bytes, {.gamma_us_per_byte = kGamma})) {
        times[full_name(*algorithm, shape)] = *us;
      }
    }
  }
  return times;
}

TEST(HostsTime, ChoosesWhatIsAboutTheFastestInTheSimulator) {
  double worst = 1;
  double sum = 0;
  int cases = 0;
  for (const std::vector<int>& hosts : kLayouts) {
    const Topology topology = topology_of(hosts);
    for (const Collective collective : kCollectives) {
      for (const double bytes : {0.0, 64.0, 4096.0, 65536.0, 1e6, 64e6}) {
        const OnTopology plan = plan_on(
            {.collective = collective, .ranks = static_cast<int>(hosts.size()), .bytes = bytes},
            topology, {.most_messages = 2e4, .gamma_us_per_byte = kGamma});
        const auto times = times_of(hosts, collective, bytes);
        const auto chosen =
            std::ranges::min_element(times, {}, [](const auto& one) { return one.second; });
        const auto row = std::ranges::find(plan.rows, chosen->first, &OnTopology::Row::name);
        ASSERT_NE(row, plan.rows.end()) << chosen->first;
        const double off = row->time_s / plan.rows.front().time_s;
        EXPECT_LE(off, 1.35) << to_string(collective) << " of " << bytes << " on " << hosts.size()
                             << " ranks: " << chosen->first << ", not " << plan.rows.front().name;
        worst = std::max(worst, off);
        sum += off;
        ++cases;
      }
    }
  }
  EXPECT_LE(sum / cases, 1.03);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(sum / cases));
}

// With one rank on each host and one message at a time nothing is shared.
TEST(HostsTime, IsTheSimulatorsWhereRanksShareNothing) {
  for (const int ranks : {2, 3, 8}) {
    std::vector<int> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.push_back(rank);
    }
    const Topology topology = topology_of(hosts);
    for (const Collective collective : kCollectives) {
      const auto times = times_of(hosts, collective, 1e6);
      for (const OnTopology::Row& row :
           plan_on({.collective = collective, .ranks = ranks, .bytes = 1e6}, topology,
                   {.most_messages = 2e4, .gamma_us_per_byte = kGamma})
               .rows) {
        EXPECT_NEAR(times.at(row.name), row.time_s * 1e6, 1e-6 * row.time_s * 1e6) << row.name;
      }
    }
  }
}

TEST(HostsTime, LeavesOutWhatHasTooManyMessages) {
  const std::vector<int> hosts = {0, 0, 1, 1};
  const cost::HostsTime time(kNetwork, hosts);
  const Algorithm& flat = *find_algorithm(Collective::all_to_all, "flat");
  EXPECT_TRUE(time.time_us(flat, complete(flat, {.ranks = 4}), 64, {}).has_value());
  EXPECT_FALSE(
      time.time_us(flat, complete(flat, {.ranks = 4}), 64, {.most_messages = 3}).has_value());
}

// Thousands of equal steps take no longer to predict than a few.
TEST(HostsTime, RepeatedStepsArePlayedOnce) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 512; ++rank) {
    hosts.push_back(rank / 8);
  }
  const cost::HostsTime time(kNetwork, hosts);
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  EXPECT_TRUE(time.time_us(ring, complete(ring, {.ranks = 512}), 64e6, {}).has_value());
}

}  // namespace
}  // namespace unisono::network_model
