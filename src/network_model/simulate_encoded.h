// Simulates an algorithm with encoded moves on a topology.
#pragma once

#include "cost/encoded.h"
#include "network_model/simulator/simulation.h"
#include "topology/topology.h"

namespace unisono::network_model {

// Includes the time of coding. REQUIRES: the algorithm has a schedule. Throws Error(usage) if it
// has too many messages.
SimulationResult simulate_encoded(const cost::EncodedAlgorithm& algorithm, double bytes,
                                  const Topology& topology, SimulationOptions options);

}  // namespace unisono::network_model
