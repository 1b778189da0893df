// Converts between schedules and execution plans of MSCCL++.
#pragma once

#include "mscclpp/plan.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace unisono::mscclpp {

// Returns a plan for calls in place, or for calls out of place. Its thread blocks are the blocks of
// msccl::to_program(), cut into pieces of at most as many operations as the executor supports.
// Throws Error(usage) if the format does not support the collective, or if the schedule would
// overwrite its input in place. REQUIRES: a valid schedule.
//
// Data moves by `put`. Its destination is
//  - the final place, if nothing in the plan has touched that place before;
//  - the final place too, if only earlier steps have touched it: the receiver then signals that the
//    place is free;
//  - otherwise a separate row of scratch, from which the receiver copies or adds it.
// No data is put before the receiver has signalled its start, and the receiver ends when all data
// has arrived. So a launch never touches data that another launch still uses.
ExecutionPlan to_plan(const Schedule& schedule, Aliasing aliasing);

// Returns a schedule with the plan's effect: the same transfers, in as few steps as their order
// allows. Throws Error(usage) if a schedule cannot express the plan. REQUIRES: check() found
// nothing, and the root is that of its proof.
Schedule to_schedule(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
