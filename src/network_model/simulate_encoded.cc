#include "network_model/simulate_encoded.h"

#include "network_model/simulator/simulate.h"

namespace unisono::network_model {

SimulationResult simulate_encoded(const cost::EncodedAlgorithm& algorithm, double bytes,
                                  const Topology& topology, SimulationOptions options) {
  Workload workload{.ranks = algorithm.schedule->ranks};
  workload.items.push_back(
      {.name = algorithm.title, .bytes = bytes, .schedule = algorithm.schedule});
  options.coding_us_per_byte = cost::kCodingUsPerByte;
  return simulate(workload, topology, options);
}

}  // namespace unisono::network_model
