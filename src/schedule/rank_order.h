// Checks whether a schedule sums in rank order. All schedules that do so give the same bits.
#pragma once

#include "schedule/schedule.h"

namespace unisono {

// Returns true if every sum is ((rank 0 + rank 1) + rank 2) + ..., and no partial sum goes from
// rank to rank. The engine then adds in one pass and rounds narrow floats once. Also returns true
// if nothing is summed. REQUIRES: the structure of the schedule is correct.
bool sums_in_rank_order(const Schedule& schedule);

}  // namespace unisono
