// The parts of `unisono sim`.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "model/simulator/simulate.h"

namespace unisono::cli {

// Throws UsageError.
model::SimulationOptions simulation_options(const Arguments& arguments);

// `topology`: nullptr for a flat network.
void print_simulation(const model::SimulationResult& result, const model::Workload& workload,
                      const Topology* topology, const Console& console);

struct Simulation {
  model::Workload workload;
  model::SimulationResult result;
};

struct SweepRow {
  std::uint64_t bytes = 0;
  Simulation made;
};
void print_sweep(const std::vector<SweepRow>& rows, const Topology* topology,
                 const Console& console);

}  // namespace unisono::cli
