// Proves that a schedule is correct: data flow by counting, hazards, progress, in-place safety.
#pragma once

#include <vector>

#include "schedule/finding.h"
#include "schedule/schedule.h"

namespace unisono {

// Returns nothing if the schedule is correct for out-of-place buffers. Only verify_in_place reports
// in-place problems, because the engine can copy the input of such a schedule first.
std::vector<Finding> verify(const Schedule& schedule);
std::vector<Finding> verify_in_place(const Schedule& schedule);

}  // namespace unisono
