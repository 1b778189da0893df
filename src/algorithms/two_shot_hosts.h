// An all_reduce for encoded moves between hosts: every input, or every host's sum of inputs, goes
// once to the rank that sums it, and the result goes once from there.
//
// If all hosts have the same number R of ranks: reduce_scatter among the ranks of each host; then
// the i-th ranks of all hosts make the flat all_reduce of their part, which is 1/R of the vector;
// then all_gather in each host. With h hosts, each rank sends 2(h-1)/h of its part to other hosts.
// If hosts have different numbers of ranks: the flat all_reduce of all ranks.
#pragma once

#include <span>

#include "schedule/schedule.h"

namespace unisono::algorithms {

// `hosts` has one number per rank.
Schedule two_shot_between(std::span<const int> hosts);

}  // namespace unisono::algorithms
