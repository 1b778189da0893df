// Proves that a schedule is right: data flow by counting, hazards, progress, in-place safety.
#pragma once

#include <vector>

#include "schedule/finding.h"
#include "schedule/schedule.h"

namespace unisono {

// Empty: the schedule is right for out-of-place buffers. In-place problems are reported only by
// verify_in_place, because the engine can stage the input of such a schedule.
std::vector<Finding> verify(const Schedule& schedule);
std::vector<Finding> verify_in_place(const Schedule& schedule);

}  // namespace unisono
