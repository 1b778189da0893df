// The transfers of a schedule, which a conversion to another executor's program and back must keep.
#pragma once

#include <map>
#include <tuple>

#include "schedule/schedule.h"

namespace unisono::executors::testing {

// Counts each chunk's transfers between ranks; data that stays on a rank needs no move.
using Transfers = std::map<std::tuple<int, int, int, Combine>, int>;
Transfers transfers(const Schedule& schedule);

}  // namespace unisono::executors::testing
