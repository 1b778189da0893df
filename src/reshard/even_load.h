// Distributes loads as evenly as possible among the ranks that may take them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace unisono::parallel {

// Maps each set of ranks to the bytes that these ranks may send, in any shares. Lists are in
// ascending order.
using Loads = std::map<std::vector<int>, std::uint64_t>;

// Returns the fewest bytes, rounded up, that the busiest rank must send. For any set of ranks, the
// bytes that only they may send have an average per rank; the result is the largest such average.
// Ignores bytes with an empty list.
std::uint64_t least_busiest(const Loads& loads);

}  // namespace unisono::parallel
