// The result of a simulation as JSON (`unisono.simulation/1`) and as a trace that
// chrome://tracing and Perfetto read.
#pragma once

#include <cstddef>
#include <string>

#include "network_model/simulator/simulate.h"

namespace unisono::network_model {

struct ReportOptions {
  std::size_t most_ranks = 64;     // rows per list; the rest is counted, not listed
  std::size_t most_links = 64;     // those busy the longest
  std::size_t most_messages = 64;  // of the critical path, its last
};

// `topology` names the links; nullptr for a flat network.
std::string report_json(const SimulationResult& result, const Workload& workload,
                        const Topology* topology, const ReportOptions& options = {});

// The links in falling order of how long they were busy; those never used are left out.
std::vector<std::size_t> busiest_links(const SimulationResult& result);

std::string link_name(const Topology& topology, std::size_t link);  // "a->b"

// Writes the recorded messages and compute steps: one thread for each rank's sending side,
// receiving side and computations.
std::string chrome_trace(const SimulationResult& result, const Workload& workload);

}  // namespace unisono::network_model
