// Finds the ranks of a topology that share a host.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace unisono::network_model {

// Returns, by rank, the node of the topology that contains it. A rank outside all nodes is a host
// of its own. REQUIRES: the topology has this many ranks.
std::vector<int> hosts_on(const Topology& topology, int ranks);

}  // namespace unisono::network_model
