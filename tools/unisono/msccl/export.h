// Between schedules and programs of MSCCL.
#pragma once

#include "msccl/program.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace unisono::msccl {

// One thread block per peer and direction, and one for what stays within the GPU. Throws
// Error(usage) where the format has no word for the collective. REQUIRES: a right schedule.
MscclProgram to_program(const Schedule& schedule);
// The same for one of the two ways to call it. REQUIRES: the schedule is right in that way.
MscclProgram to_program(const Schedule& schedule, Aliasing aliasing);

// Returns a schedule with the program's effect: the same transfers, in as few steps as their order
// allows. A receive into scratch that is later added becomes one reducing move. Throws Error(usage)
// if a rank keeps two values of one chunk at once, for which a schedule has no place. REQUIRES:
// check() found nothing.
Schedule to_schedule(const MscclProgram& program);

}  // namespace unisono::msccl
