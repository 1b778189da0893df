// Plays a schedule in SimGrid, with the platform and the rules of unisono's simulator.
#pragma once

#include "schedule/compact.h"
#include "topology/topology.h"

namespace unisono::bench {

struct Replayed {
  double simulated_us = 0;
  double wall_s = 0;  // includes creating the platform and finding the routes
};

// Call at most once, because SimGrid allows one engine per process.
//
// Every link of the topology is a one-way SimGrid link, and the routes are unisono's. Every rank
// has an actor that sends and an actor that receives, one message at a time, by a put and a
// matching get. The network model is CM02 without corrections: factors of 1, no cross traffic, no
// window.
Replayed replay(const Topology& topology, const CompactSchedule& schedule, double bytes);

}  // namespace unisono::bench
