// Predicts an all_reduce whose sums are made by switches, as in NVLink SHARP. Each of the g ranks
// on a switch reads its part of the sum: the switch reads this part of the vectors of all ranks,
// and returns their sum. Then the rank writes the sum to all ranks. So every link carries the
// vector once in each direction, plus a part of the sum. With several such switches, each rank
// meanwhile exchanges its part with the ranks of equal position behind the other switches; the
// slower of both decides.
//
// This is only a prediction: this library's ranks move data by schedules, and a switch is not a
// rank.
//
// time    2 * (message + latency)
//         + max(start + (1 + 1/g) S / (reduces * bandwidth),
//               all_reduce of S/g between the switches)
// source  Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP), COMHPC 2016
//         Klenk et al., An in-network architecture for accelerating shared-memory multiprocessor
//         collectives, ISCA 2020
#pragma once

#include <optional>
#include <string>

#include "topology/topology.h"

namespace unisono::network_model {

struct InSwitch {
  double time_s = 0;
  std::string between = {};  // algorithm that exchanges the sums of several switches
};

struct InSwitchOptions {
  double gamma_us_per_byte = 0;  // to reduce between switches
  double most_messages = 0;      // as in SimulationOptions
};

// Returns the time of an all_reduce of this many bytes among the first ranks of the topology.
// Returns nothing if a rank is not on a reducing switch, or if the switches have different numbers
// of ranks or fewer than 4. REQUIRES: the topology has this many ranks.
std::optional<InSwitch> reduce_in_switches(int ranks, double bytes, const Topology& topology,
                                           const InSwitchOptions& options = {});

}  // namespace unisono::network_model
