// Finds the ranks of a topology that are on one host.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace unisono::network_model {

// By rank, the node of the topology that it is in; ranks in none are each a host of their own.
// REQUIRES: the topology has so many ranks.
std::vector<int> hosts_on(const Topology& topology, int ranks);

}  // namespace unisono::network_model
