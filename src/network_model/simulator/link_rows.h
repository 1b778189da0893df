// Links in a row: a device without a rank that has no more than two neighbours passes on all that
// comes to it (a NIC between a GPU and its switch), so what flows over one link flows over the
// next. One link can stand for such a row, with the least bandwidth of them.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace unisono::network_model {

// By link: the first link of its row, which is the link itself if no other precedes it. Every route
// with one link of a row has all of them.
std::vector<int> first_of_rows(const Topology& topology);

}  // namespace unisono::network_model
