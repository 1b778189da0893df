// Chooses the shapes of an algorithm that fit the hosts of its ranks.
#pragma once

#include <span>
#include <vector>

#include "algorithms/catalog.h"

namespace unisono::cost {

// As it is without parameters, with the hosts as its groups, and with more segments; of those that
// it can serve, each once. `hosts`: one number for each rank.
std::vector<Shape> shapes_on(std::span<const int> hosts, const Algorithm& algorithm, Shape usual);

}  // namespace unisono::cost
