// Converts between schedules and programs of MSCCL.
#pragma once

#include "msccl/program.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace unisono::msccl {

// Returns a program with one thread block per peer and direction, and one for copies within the
// GPU. Throws Error(usage) if the format does not support the collective. REQUIRES: a valid
// schedule.
MscclProgram to_program(const Schedule& schedule);
// Like the above, for calls in place or for calls out of place. REQUIRES: the schedule is valid for
// this form.
MscclProgram to_program(const Schedule& schedule, Aliasing aliasing);

// Returns a schedule with the program's effect: the same transfers, in as few steps as their order
// allows. A receive into scratch and the later addition of its data become one reducing move.
// Throws Error(usage) if a rank keeps two values of one chunk at once, because a schedule has no
// place for the second value. REQUIRES: check() found nothing.
Schedule to_schedule(const MscclProgram& program);

}  // namespace unisono::msccl
