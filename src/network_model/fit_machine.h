// Fits a machine (cost/machine.h) to measurements.
#pragma once

#include <vector>

#include "cost/machine.h"

namespace unisono::network_model {

// Throws Error(usage) if a point has no time above 0, no finite bytes, no rank, or an algorithm
// that does not serve it.
cost::Machine fit_machine(std::vector<cost::Point> points);

}  // namespace unisono::network_model
