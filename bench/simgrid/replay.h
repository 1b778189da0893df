// Plays a schedule with SimGrid, on the platform and by the rules that the simulator of unisono
// has.
#pragma once

#include "schedule/compact.h"
#include "topology/topology.h"

namespace unisono::bench {

struct Replayed {
  double simulated_us = 0;
  double wall_s = 0;  // with making the platform and finding the routes
};

// SimGrid has one engine a process: call this once.
//
// Every link of the topology is one of SimGrid, of one direction; routes are those of unisono.
// Every rank has an actor that sends and one that receives, each one message at a time: a put and a
// get that meet. The network model is CM02 with all of its corrections off: factors of 1, no cross
// traffic, no window.
Replayed replay(const Topology& topology, const CompactSchedule& schedule, double bytes);

}  // namespace unisono::bench
