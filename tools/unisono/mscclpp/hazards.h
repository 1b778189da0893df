// Finds unordered accesses in a plan: overlapping places, shared counters, and GPUs that have not
// begun or have ended.
#pragma once

#include <vector>

#include "executors/contents.h"
#include "executors/flaw.h"
#include "mscclpp/order.h"

namespace unisono::mscclpp {

// Two operations are ordered by a nop of their block, by a signal and its wait, by a release and
// its acquire, or by a barrier between them. Vector clocks (Fidge 1988, Mattern 1989) track this
// order: they count the nops of each block, for the blocks that access the memory of one GPU at a
// time.
std::vector<executors::Flaw> find_hazards(const ExecutionPlan& plan, const OperationTable& table,
                                          const CounterTable& counters, const PlanOrder& order,
                                          const executors::BufferContents& memory);

}  // namespace unisono::mscclpp
