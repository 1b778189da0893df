// The simulator: how long a workload takes on a topology, and where the time goes.
//
// Every rank has `ports` sending and as many receiving ports for each stream. A message (all moves
// from one rank to another in one step) starts when its data is ready, its sender has a port free
// and its receiver has one, each taking messages in the order of the schedule (cost/cost.h). It
// takes its overhead and the latencies of its links, then its bytes flow at a rate that all flows
// under way share fairly: max-min, so that a flow could only have more at the cost of one that has
// no more than it. Reducing what has come occupies the receiving port for gamma a byte.
//
// With one port and links that are alone with a message, this is the one-port model of
// cost/cost.h.
//
// Two engines give the same times where both apply. If no link could ever hold up messages that
// meet there, rates never change, and times follow message by message; steps that repeat are then
// not all simulated: once a step takes every rank equally longer than the step before, so do all
// after it (the times are a max-plus linear map of those one step before, and that commutes with
// adding a constant). Else events are played through in the order of time.
#pragma once

#include "cost/cost.h"
#include "network_model/simulator/simulation.h"
#include "network_model/simulator/workload.h"
#include "topology/topology.h"

namespace unisono::network_model {

// Errors: Error(usage) for ranks that the topology lacks, or that have no way to each other.
SimulationResult simulate(const Workload& workload, const Topology& topology,
                          const SimulationOptions& options = {});
// Every pair of ranks has a link of its own.
SimulationResult simulate(const Workload& workload, const cost::Parameters& flat,
                          const SimulationOptions& options = {});

}  // namespace unisono::network_model
