// The simulator: predicts how long a workload takes on a topology, and where the time goes.
//
// Every rank has `ports` sending and as many receiving ports for each stream. A message (all moves
// from one rank to another in one step) starts when its data is ready and when its sender and its
// receiver each have a free port; ports take messages in the order of the schedule (cost/cost.h). A
// message takes its overhead and the latencies of its links. Then its bytes flow at a rate that all
// flows in transit share fairly (max-min: a flow could be faster only if a flow that is not faster
// became slower). Reducing the received bytes occupies the receiving port for gamma per byte.
//
// With one port, and with links that carry one message at a time, this is the one-port model of
// cost/cost.h.
//
// Two engines give the same times where both apply. If no link can ever delay messages that meet on
// it, rates never change, and the times follow message by message. In this case not all repeated
// steps are simulated: once a step delays every rank equally against the previous step, all later
// steps do the same. (The times of a step are a max-plus linear map of the times one step before,
// and such a map commutes with adding a constant.) Otherwise events are played in time order.
#pragma once

#include "cost/cost.h"
#include "network_model/simulator/simulation.h"
#include "network_model/simulator/workload.h"
#include "topology/topology.h"

namespace unisono::network_model {

// Errors: Error(usage) for ranks that the topology lacks, or that have no route to each other.
SimulationResult simulate(const Workload& workload, const Topology& topology,
                          const SimulationOptions& options = {});
// Simulates a flat network: every pair of ranks has its own link.
SimulationResult simulate(const Workload& workload, const cost::Parameters& flat,
                          const SimulationOptions& options = {});

}  // namespace unisono::network_model
