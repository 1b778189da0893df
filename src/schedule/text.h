// A schedule as text, for people and for diffs: one line for the shape, one per phase, and one per
// move.
//
//   all_reduce/ring ranks=4 root=0 chunks=4 steps=6
//   phase reduce_scatter
//   step 0: 0.output -> 1.output chunk 3 reduce
//   step 1: 0.output -> 1.output chunks 2-3 replace
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace unisono {

std::string to_text(const Schedule& schedule);
std::string to_text(const Move& move);  // without the line end

}  // namespace unisono
