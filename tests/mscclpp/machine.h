// Runs a plan on numbers, with its threads in a random order, for comparison with the proofs.
#pragma once

#include <cstdint>

#include "mscclpp/plan.h"

namespace unisono::mscclpp::testing {

// Shares only the plan with the proofs. Each GPU launches the plan `launches` times, each time
// after the previous launch has ended on this GPU, with other numbers; in between its caller
// overwrites input and output. Returns true if each launch ends on each GPU with the result of a
// plain loop over ranks, and no thread waits forever.
bool runs_right(const ExecutionPlan& plan, std::uint32_t seed, int launches = 2);

}  // namespace unisono::mscclpp::testing
