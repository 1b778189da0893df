// Checks whether a schedule sums in rank order, so that its result has the same bits as that of
// every other schedule that does.
#pragma once

#include "schedule/schedule.h"

namespace unisono {

// Every sum is ((rank 0 + rank 1) + rank 2) + ..., and no part of one goes from rank to rank: the
// engine then adds in one pass, and rounds narrow floats once. True where nothing is summed.
// REQUIRES: the structure of the schedule is right.
bool sums_in_rank_order(const Schedule& schedule);

}  // namespace unisono
