#include "model/plan_on.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "model/simulator/simulate.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

int node_of_rank(const Topology& topology, int rank) {
  int device = topology.ranks[static_cast<std::size_t>(rank)];
  while (device >= 0 &&
         topology.devices[static_cast<std::size_t>(device)].kind != DeviceKind::node) {
    device = topology.devices[static_cast<std::size_t>(device)].inside;
  }
  return device;
}

// How many ranks each node has, where all have as many and they come node by node; else 0.
int ranks_of_a_node(const Topology& topology, int ranks) {
  int block = 0;
  while (block < ranks && node_of_rank(topology, block) == node_of_rank(topology, 0)) {
    ++block;
  }
  std::set<int> seen;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = node_of_rank(topology, rank);
    const bool right =
        rank % block == 0 ? seen.insert(node).second : node == node_of_rank(topology, rank - 1);
    if (node < 0 || !right) {
      return 0;
    }
  }
  return ranks % block == 0 ? block : 0;
}

std::vector<Shape> shapes_of(const Algorithm& algorithm, const Topology& topology, int ranks) {
  std::vector<Shape> shapes = {complete(algorithm, {.ranks = ranks})};
  const AlgorithmParameters usual = shapes.front().parameters;
  const int local = ranks_of_a_node(topology, ranks);
  if (usual.local.front() > 0 && local > 1 && local < ranks) {
    shapes.front().parameters.local = {local};
  }
  for (const int segments : {4, 16, 64}) {
    if (usual.segments > 0 && usual.segments != segments) {
      shapes.push_back(shapes.front());
      shapes.back().parameters.segments = segments;
    }
  }
  return shapes;
}

void simulate_shape(const Algorithm& algorithm, const Shape& shape, const Call& call,
                    const Topology& topology, const OnTopologyOptions& options,
                    OnTopology& result) {
  constexpr double kSecondsPerUs = 1e-6;
  const std::string name = full_name(algorithm, shape);
  try {
    Workload workload{.ranks = shape.ranks};
    workload.items.push_back(operation(algorithm, shape, call.bytes));
    const SimulationResult simulated = simulate(workload, topology,
                                                {.gamma_us_per_byte = options.gamma_us_per_byte,
                                                 .rank_times = false,
                                                 .most_messages = options.most_messages});
    result.rows.push_back({.name = name,
                           .time_s = simulated.total_us * kSecondsPerUs,
                           .messages = simulated.messages});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) {
      throw;
    }
    result.left.push_back({.name = name, .why = "too many messages to simulate"});
  }
}

}  // namespace

OnTopology plan_on(const Call& call, const Topology& topology, const OnTopologyOptions& options) {
  OnTopology result;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != plain_form(call.collective) ||
        (is_v_form(call.collective) && !algorithm->allows_v) ||
        (options.rank_order && !algorithm->rank_order)) {
      continue;
    }
    if (!can_serve(*algorithm, {.ranks = call.ranks})) {
      result.left.push_back(
          {.name = std::string(algorithm->name), .why = std::string(algorithm->limits)});
      continue;
    }
    std::set<std::string> names;
    for (const Shape& shape : shapes_of(*algorithm, topology, call.ranks)) {
      const bool is_asked =
          options.only.empty() || options.only.contains(full_name(*algorithm, shape));
      if (is_asked && can_serve(*algorithm, shape) &&
          names.insert(full_name(*algorithm, shape)).second) {
        options.begins(full_name(*algorithm, shape));
        simulate_shape(*algorithm, shape, call, topology, options, result);
      }
    }
  }
  if (call.collective == Collective::all_reduce && options.only.empty() && !options.rank_order) {
    result.in_switch = reduce_in_switches(
        call.ranks, call.bytes, topology,
        {.gamma_us_per_byte = options.gamma_us_per_byte, .most_messages = options.most_messages});
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const OnTopology::Row& a, const OnTopology::Row& b) {
                     return a.time_s < b.time_s * (1 - 1e-12);
                   });
  return result;
}

}  // namespace unisono::model
