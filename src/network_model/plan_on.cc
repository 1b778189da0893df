#include "network_model/plan_on.h"

#include <algorithm>

#include "cost/encoded.h"
#include "cost/shapes.h"
#include "network_model/hosts_on.h"
#include "network_model/simulate_encoded.h"
#include "network_model/simulator/simulate.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

constexpr double kSecondsPerUs = 1e-6;

SimulationOptions simulation_options(const OnTopologyOptions& options) {
  return {.gamma_us_per_byte = options.gamma_us_per_byte,
          .rank_times = false,
          .most_messages = options.most_messages};
}

// Returns true if the ranks could send everything at once.
bool nobody_waits(const WorkItem& item) {
  if (item.compact == nullptr) {
    return false;
  }
  const std::vector<CompactPhase>& phases = item.compact->phases;
  return std::all_of(phases.begin(), phases.end(), [&](const CompactPhase& phase) {
    return !phase.waits || (phases.size() == 1 && phase.steps == 1);
  });
}

// Adds a row, or the reason for its absence.
template <class Simulate>
void add_row(const std::string& name, const OnTopologyOptions& options, const Simulate& simulate_it,
             OnTopology& result) {
  options.begins(name);
  try {
    const SimulationResult simulated = simulate_it();
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

// Their names contain the code, so that they can be listed together with the exact algorithms.
void add_encoded(const Call& call, const Topology& topology, const OnTopologyOptions& options,
                 OnTopology& result) {
  for (const cost::EncodedAlgorithm& algorithm :
       cost::encoded_algorithms({.collective = call.collective, .code = options.code},
                                hosts_on(topology, call.ranks), options.most_messages)) {
    if (algorithm.schedule == nullptr) {
      result.left.push_back({.name = algorithm.title, .why = algorithm.why_not});
      continue;
    }
    add_row(
        algorithm.title, options,
        [&] {
          return simulate_encoded(algorithm, call.bytes, topology, simulation_options(options));
        },
        result);
  }
}

}  // namespace

OnTopology plan_on(const Call& call, const Topology& topology, const OnTopologyOptions& options) {
  OnTopology result;
  const std::vector<int> hosts = hosts_on(topology, call.ranks);
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
    for (const Shape& shape : cost::shapes_on(hosts, *algorithm, {.ranks = call.ranks})) {
      const std::string name = full_name(*algorithm, shape);
      if (options.only.empty() || options.only.contains(name)) {
        add_row(
            name, options,
            [&] {
              Workload workload{.ranks = call.ranks};
              workload.items.push_back(operation(*algorithm, shape, call.bytes));
              SimulationOptions simulation = simulation_options(options);
              simulation.ports = nobody_waits(workload.items.front()) ? options.at_once : 1;
              return simulate(workload, topology, simulation);
            },
            result);
      }
    }
  }
  if (options.code != MoveCode::none) {
    add_encoded(call, topology, options, result);
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

}  // namespace unisono::network_model
