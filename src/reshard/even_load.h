// The most even way to share loads out among the ranks that may take them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace unisono::parallel {

// Bytes by the ranks that may send them, in any shares. Each list is in ascending order.
using Loads = std::map<std::vector<int>, std::uint64_t>;

// Returns the least bytes, rounded up, that the busiest rank sends: the largest average over any
// set of ranks of the bytes that only these may send. Bytes with an empty list count for
// nobody.
std::uint64_t least_busiest(const Loads& loads);

}  // namespace unisono::parallel
