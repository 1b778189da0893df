// Finds unordered accesses in a plan: overlapping places, shared counters, and GPUs that have not
// begun or have ended.
#pragma once

#include <vector>

#include "executors/contents.h"
#include "executors/flaw.h"
#include "mscclpp/order.h"

namespace unisono::mscclpp {

// In order is what is on two sides of a nop of its block, what is before a signal and behind its
// wait, a release and its acquire, a barrier. Vector clocks (Fidge 1988, Mattern 1989), that count
// the nops of each block, over the blocks that touch the memory of one GPU at a time.
std::vector<executors::Flaw> find_hazards(const ExecutionPlan& plan, const OperationTable& table,
                                          const CounterTable& counters, const PlanOrder& order,
                                          const executors::BufferContents& memory);

}  // namespace unisono::mscclpp
