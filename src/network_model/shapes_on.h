// Maps ranks to a topology: the ranks on each host, and the shapes of an algorithm that fit.
#pragma once

#include <vector>

#include "algorithms/catalog.h"
#include "topology/topology.h"

namespace unisono::network_model {

// By rank, the node of the topology that it is in; ranks in none are each a host of their own.
// REQUIRES: the topology has so many ranks.
std::vector<int> hosts_on(const Topology& topology, int ranks);

// As it is without parameters, with the nodes of the topology as its groups, and with more
// segments; of those that it can serve, each once.
std::vector<Shape> shapes_on(const Topology& topology, const Algorithm& algorithm, Shape usual);

}  // namespace unisono::network_model
