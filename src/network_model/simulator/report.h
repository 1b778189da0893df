// Writes the result of a simulation as JSON (`unisono.simulation/1`), and as a trace that
// chrome://tracing and Perfetto read.
#pragma once

#include <cstddef>
#include <string>

#include "network_model/simulator/simulate.h"

namespace unisono::network_model {

struct ReportOptions {
  std::size_t most_ranks = 64;     // rows per list; further rows are only counted
  std::size_t most_links = 64;     // the busiest ones
  std::size_t most_messages = 64;  // the last messages of the critical path
};

// `topology` names the links; nullptr for a flat network.
std::string report_json(const SimulationResult& result, const Workload& workload,
                        const Topology* topology, const ReportOptions& options = {});

// Returns the links by descending busy time, without unused links.
std::vector<std::size_t> busiest_links(const SimulationResult& result);

std::string link_name(const Topology& topology, std::size_t link);  // "a->b"

// Writes the recorded messages and compute steps, with one thread for each rank's sending side,
// receiving side and computations.
std::string chrome_trace(const SimulationResult& result, const Workload& workload);

}  // namespace unisono::network_model
