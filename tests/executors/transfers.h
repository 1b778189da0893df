// What a schedule moves: the same before and after it was a program of another executor.
#pragma once

#include <map>
#include <tuple>

#include "schedule/schedule.h"

namespace unisono::executors::testing {

// How often each chunk goes from one rank to another; what stays on a rank needs no move.
using Transfers = std::map<std::tuple<int, int, int, Combine>, int>;
Transfers transfers(const Schedule& schedule);

}  // namespace unisono::executors::testing
