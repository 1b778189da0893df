// An all_reduce for moves between hosts that are encoded: every input, or sum of the inputs of a
// host, goes once to the rank that sums it, and the result once from there.
//
// Where all hosts have as many ranks, R: reduce_scatter among the ranks of each host, then rank i
// of every host makes the flat all_reduce of its R-th with the i-th ranks of the others, then
// all_gather in each host; so 2(h-1)/h of a R-th go out of each rank, with h hosts. Elsewhere the
// flat all_reduce of all.
#pragma once

#include <span>

#include "schedule/schedule.h"

namespace unisono::algorithms {

// `hosts`: one number for each rank.
Schedule two_shot_between(std::span<const int> hosts);

}  // namespace unisono::algorithms
