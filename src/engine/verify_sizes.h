// Proves that the exchange of given counts is right: with the layout that a run would take, each
// rank ends with the blocks that the others send it, of the right sizes, in the order of ranks.
#pragma once

#include <vector>

#include "schedule/verify.h"

namespace unisono::engine {

// For a schedule with counts; together with verify(), which proves that each output cell ends with
// the right block, whatever its size. A rank knows its own row of what is sent and its own row of
// what is expected, as in a call of all_to_all_v, and nothing else:
//
//   counts_differ  both ends of a block know different sizes
//   size_unknown   a move has a rank that is neither end of its block, which is not empty
//   block_place    a block does not begin where those before it, in the order of ranks, end
//
// REQUIRES: verify() finds no mistake of structure.
std::vector<Finding> verify_sizes(const Schedule& schedule);

// verify(), and verify_sizes() where there are counts.
std::vector<Finding> verify_with_sizes(const Schedule& schedule);

}  // namespace unisono::engine
