// An all_reduce for encoded moves between hosts. Between hosts, every input (or every host's sum of
// inputs) is sent once to the rank that sums it, and this rank sends the result once.
//
// If all hosts have the same number R of ranks:
//   1. a reduce_scatter among the ranks of each host;
//   2. a flat all_reduce among the i-th ranks of all hosts, of their 1/R of the vector;
//   3. an all_gather in each host.
// With h hosts, each rank sends 2(h-1)/h of its part to other hosts. If hosts have different
// numbers of ranks, this is the flat all_reduce of all ranks.
#pragma once

#include <span>

#include "schedule/schedule.h"

namespace unisono::algorithms {

// `hosts` has one number per rank.
Schedule two_shot_between(std::span<const int> hosts);

}  // namespace unisono::algorithms
