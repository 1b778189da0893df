// Prepares a workload for playing: messages with their costs, in the order in which ports take
// them.
#pragma once

#include <cstdint>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"
#include "network_model/simulator/simulation.h"
#include "network_model/simulator/workload.h"

namespace unisono::network_model {

// Errors: Error(usage) for ranks that do not exist. The blocks of a single operation with many
// messages (SimulationOptions) are made on request.
Play make_play(const Workload& workload, const SimulationOptions& options, PathTable& paths);

// Throws Error(usage) if there are more messages than the limit, with an estimate of the time.
// Messages that share links take thirty times as long.
void check_limit(double messages, const SimulationOptions& options, bool shared);

// Returns a factor from 1 to 1 + jitter, always the same for the same message.
double jitter_factor(const SimulationOptions& options, std::uint64_t item, std::uint64_t step,
                     std::uint64_t message);

}  // namespace unisono::network_model
