// Proves that an exchange with given counts is correct: with the layout of a real run, each rank
// ends with the blocks that the others send it, with the correct sizes, in rank order.
#pragma once

#include <vector>

#include "schedule/verify.h"

namespace unisono::engine {

// Checks a schedule with counts. It complements verify(), which proves that each output cell ends
// with the correct block, whatever its size. As in a call of all_to_all_v, a rank knows only its
// own row of sent counts and its own row of expected counts. Findings:
//
//   counts_differ  the two ends of a block know different sizes
//   size_unknown   a block that is not empty moves to or from a rank that is neither of its ends
//   block_place    a block does not begin where the preceding block, in rank order, ends
//
// REQUIRES: verify() finds no mistake of structure.
std::vector<Finding> verify_sizes(const Schedule& schedule);

// Calls verify(), and also verify_sizes() if the schedule has counts.
std::vector<Finding> verify_with_sizes(const Schedule& schedule);

}  // namespace unisono::engine
