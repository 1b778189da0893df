// The residuals of measured times (cost/residuals.h).
#pragma once

#include <cstddef>
#include <vector>

#include "cost/residuals.h"

namespace unisono::network_model {

inline constexpr std::size_t kMostResiduals = 400;

// Cost: cubic in the number of residuals; above kMostResiduals, neighbours in size are merged
// first.
cost::Residuals fit_residuals(std::vector<cost::Residual> known);

}  // namespace unisono::network_model
