// Streamed blocks give the results of stored blocks, to the last bit.
#include "network_model/simulator/streamed.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/testing_sanitizers.h"
#include "network_model/simulator/report.h"
#include "network_model/simulator/testing.h"
#include "topology/presets.h"

namespace unisono::network_model {
namespace {

std::string all_of(const SimulationResult& result, const Workload& workload,
                   const Topology& topology) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  return report_json(result, workload, &topology,
                     {.most_ranks = kAll, .most_links = kAll, .most_messages = kAll}) +
         std::to_string(result.simulated) + chrome_trace(result, workload);
}

struct Network {
  const char* preset = "";
  std::vector<int> ranks = {};
};

const std::vector<Network>& networks() {
  static const std::vector<Network> list = {
      {.preset = "rail_optimised:nodes=33", .ranks = {2, 3, 64, 100, 264}},
      {.preset = "fat_tree:hosts=120,ports=8", .ranks = {7, 63}},
      {.preset = "pcie_server:nodes=3", .ranks = {16, 24}},
      {.preset = "torus:x=4,y=3,z=3", .ranks = {36}}};
  return list;
}

// Returns various options, both equal and different between ranks.
std::vector<SimulationOptions> questions() {
  const SimulationOptions plain{.gamma_us_per_byte = 1e-6};
  std::vector<SimulationOptions> list(8, plain);
  list[1].rank_faults = {{.rank = 1, .late_us = 30, .factor = 3}};
  list[2].jitter = 0.3;
  list[3].ports = 3;
  list[4].contention = Contention::off;
  list[5].extrapolate = false;
  list[5].records = 1000;
  list[6].routes = RouteChoice::adaptive;
  list[7].routes = RouteChoice::hashed;
  list[7].contention = Contention::on;
  return list;
}

void expect_the_same(const Algorithm& algorithm, const Shape& shape, const Topology& topology) {
  const Workload workload = one_operation(algorithm.compact(shape), 1e6);
  for (SimulationOptions options : questions()) {
    const std::string kept = all_of(simulate(workload, topology, options), workload, topology);
    options.kept_messages = 0;
    ASSERT_EQ(all_of(simulate(workload, topology, options), workload, topology), kept);
  }
}

TEST(Streamed, IsTheSameAsKept) {
  for (const Network& network : networks()) {
    const Topology topology = *make_preset(network.preset).value;
    for (const Algorithm* algorithm : catalog()) {
      for (const int ranks : network.ranks) {
        const Shape shape = complete(*algorithm, {.ranks = ranks});
        if (algorithm->compact == nullptr || !can_serve(*algorithm, shape) ||
            (ranks > 64 && (kSanitized || algorithm->collective == Collective::all_to_all))) {
          continue;
        }
        SCOPED_TRACE(std::string(to_string(algorithm->collective)) + "/" +
                     full_name(*algorithm, shape) + " n=" + std::to_string(ranks) + " on " +
                     topology.name);
        expect_the_same(*algorithm, shape, topology);
      }
    }
  }
}

TEST(Streamed, IsTheSameForNodesOfEightAndOnAFlatNetwork) {
  const Topology topology = *make_preset("rail_optimised:nodes=48").value;
  const Algorithm* algorithm = find_algorithm(Collective::all_reduce, "hierarchical");
  for (const int ranks : {16, 24, 256, 384}) {
    const Shape shape{.ranks = ranks, .parameters = {.local = {8}}};
    expect_the_same(*algorithm, shape, topology);
    const Workload workload = one_operation(algorithm->compact(shape), 1e6);
    const cost::Parameters flat{
        .alpha_s = 1e-6, .beta_s_per_byte = 1e-10, .gamma_s_per_byte = 1e-11};
    const SimulationResult kept = simulate(workload, flat, {});
    const SimulationResult streamed = simulate(workload, flat, {.kept_messages = 0});
    EXPECT_EQ(streamed.total_us, kept.total_us);
    EXPECT_EQ(streamed.messages, kept.messages);
  }
}

}  // namespace
}  // namespace unisono::network_model
