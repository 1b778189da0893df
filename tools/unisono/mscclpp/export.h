// Between schedules and execution plans of MSCCL++.
#pragma once

#include "mscclpp/plan.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace unisono::mscclpp {

// A plan for calls in place, or for calls out of place: one says one of them. The thread blocks are
// those of msccl::to_program(), in pieces of as many operations as the executor takes. Throws
// Error(usage) where the format has no word for the collective, or where the schedule would
// overwrite its input in place. REQUIRES: a right schedule.
//
// What moves data is `put`; it lands
//  - where it is to be, if nothing in the plan has touched that place before;
//  - there as well, if what touched it belongs to earlier steps: the receiver then says, with a
//    signal, that it is free;
//  - else in a row of scratch of its own, from where the receiver copies it or adds it.
// Nothing is put before the receiver has said that it has begun, and it ends when all has come: so
// no launch touches what another still uses.
ExecutionPlan to_plan(const Schedule& schedule, Aliasing aliasing);

// The schedule that has the plan's effect: the same transfers, in as few steps as their order
// allows. Throws Error(usage) where a schedule has no words for it. REQUIRES: check() found
// nothing, and the root is that of its proof.
Schedule to_schedule(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
