// Links in a row: a device without a rank and with at most two neighbours forwards everything that
// it receives (a NIC between a GPU and its switch), so the traffic of one link flows over the next.
// One link with the least bandwidth of the row can represent all of them.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace unisono::network_model {

// Returns, by link, the first link of its row; a link that no other precedes is itself the first.
// Every route over one link of a row uses all of them.
std::vector<int> first_of_rows(const Topology& topology);

}  // namespace unisono::network_model
