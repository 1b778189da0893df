// Runs a plan on numbers, its threads in a random order: what the proofs are compared with.
#pragma once

#include <cstdint>

#include "mscclpp/plan.h"

namespace unisono::mscclpp::testing {

// Shares nothing with the proofs but the plan itself. Each GPU launches it `launches` times, when
// the one before has ended on it, and on other numbers; in between its caller overwrites input and
// output. True: each launch ends on each GPU with what a plain loop over ranks gives, and nothing
// waits for ever.
bool runs_right(const ExecutionPlan& plan, std::uint32_t seed, int launches = 2);

}  // namespace unisono::mscclpp::testing
