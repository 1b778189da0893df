// The parts of the proof that verify() puts together.
#pragma once

#include "schedule/dependencies.h"
#include "schedule/findings.h"
#include "schedule/schedule.h"

namespace unisono {

// Numbers in range, moves in order, buffers that exist. The other proofs rely on it.
void check_structure(const Schedule& schedule, Findings& findings);

// Every needed output cell ends with the right contributions, nothing is counted twice, nothing
// reads what is not there, no two writes meet.
void check_data_flow(const Schedule& schedule, Findings& findings);

// Nothing reads an input after an output took its place.
void check_stale_input(const Schedule& schedule, Findings& findings);

// The ranks finish when every lane holds one message. A rank sends in the order of its moves and
// blocks while the lane is full; a lane delivers in its order; receives on different lanes and
// local moves run when their data is there.
void check_progress(const Schedule& schedule, Aliasing aliasing, Findings& findings);

}  // namespace unisono
