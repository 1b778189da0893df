// The property of any bytes given to the parsers of topologies and workloads.
#pragma once

#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "network_model/simulator/simulate.h"
#include "network_model/simulator/workload.h"
#include "topology/json.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

inline std::string workload_json_property(std::string_view text) {
  const Parsed<network_model::Workload> parsed = network_model::parse_workload_json(text);
  if (!parsed) {
    return parsed.message.empty() || parsed.position.empty() ? "refused without message or position"
                                                             : "";
  }
  double messages = 0;
  for (const network_model::WorkItem& item : parsed.value->items) {
    messages += static_cast<double>(item.ranks.size());
  }
  constexpr double kMost = 1000;  // with more, the simulation may take seconds
  if (messages <= kMost) {
    const cost::Parameters flat{.alpha_s = 1e-6, .beta_s_per_byte = 1e-9};
    const network_model::SimulationResult result = network_model::simulate(*parsed.value, flat);
    if (!(result.total_us >= 0)) {
      return "a time below zero";
    }
  }
  return "";
}

// Returns an empty text if the property holds, otherwise the failure: a refusal states the mistake
// and its place; an accepted topology passes check(), survives being written and read again, and a
// ring runs on it unless two ranks have no route.
inline std::string topology_json_property(std::string_view text) {
  const Parsed<Topology> parsed = parse_topology_json(text);
  if (!parsed) {
    if (parsed.message.empty() || parsed.position.empty()) {
      return "refused without message or position";
    }
    return workload_json_property(text);
  }
  const Topology& topology = *parsed.value;
  constexpr int kMostRanks = 4096;
  if (topology.rank_count() > kMostRanks || topology.links.size() > kMostRanks) {
    return "";
  }
  if (check(topology)) {
    return "taken, but not right";
  }
  const std::string written = to_json(topology);
  const Parsed<Topology> again = parse_topology_json(written);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  if (to_json(*again.value) != written) {
    return "not the same when read back";
  }
  network_model::Workload workload{.ranks = topology.rank_count()};
  workload.items.push_back(network_model::operation(*find_algorithm(Collective::all_gather, "ring"),
                                                    {.ranks = workload.ranks}, 1e6));
  try {
    if (!(network_model::simulate(workload, topology).total_us >= 0)) {
      return "a time below zero";
    }
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? "" : error.what();
  }
  return "";
}

}  // namespace unisono::fuzz
