// The partial proofs that verify() combines.
#pragma once

#include "schedule/dependencies.h"
#include "schedule/findings.h"
#include "schedule/schedule.h"

namespace unisono {

// Checks that numbers are in range, moves are in order, and buffers exist. The other proofs rely on
// it.
void check_structure(const Schedule& schedule, Findings& findings);

// Checks that every required output cell ends with the correct contributions, that nothing is
// counted twice, that no move reads a cell without contents, and that no two moves write one cell
// in one step.
void check_data_flow(const Schedule& schedule, Findings& findings);

// Checks that no move reads an input whose memory an output has already taken.
void check_stale_input(const Schedule& schedule, Findings& findings);

// Checks that the ranks finish even if every lane holds only one message. A rank sends in the order
// of its moves, and blocks while the lane is full. A lane delivers in order. Receives on different
// lanes and local moves run as soon as their data is available.
void check_progress(const Schedule& schedule, Aliasing aliasing, Findings& findings);

}  // namespace unisono
