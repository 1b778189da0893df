// The parts of `unisono sim`.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "network_model/simulator/simulate.h"

namespace unisono::cli {

// Throws UsageError.
network_model::SimulationOptions simulation_options(const Arguments& arguments);

// `topology`: nullptr for a flat network.
void print_simulation(const network_model::SimulationResult& result,
                      const network_model::Workload& workload, const Topology* topology,
                      const Console& console);

struct Simulation {
  network_model::Workload workload;
  network_model::SimulationResult result;
};

struct SweepRow {
  std::uint64_t bytes = 0;
  Simulation made;
};
void print_sweep(const std::vector<SweepRow>& rows, const Topology* topology,
                 const Console& console);

}  // namespace unisono::cli
