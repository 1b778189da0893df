// Lists the shapes of an algorithm that fit the hosts of its ranks.
#pragma once

#include <span>
#include <vector>

#include "algorithms/catalog.h"

namespace unisono::cost {

// Returns the distinct shapes that the algorithm can serve, of these: without parameters, with the
// hosts as its groups, and with more segments. `hosts`: by rank, the number of its host.
std::vector<Shape> shapes_on(std::span<const int> hosts, const Algorithm& algorithm, Shape usual);

}  // namespace unisono::cost
