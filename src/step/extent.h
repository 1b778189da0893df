// The share of a tensor that a rank holds.
#pragma once

#include <cstddef>

#include "step/ranks.h"

namespace unisono::step {

// Returns the number of elements along a dimension that a rank holds of a tensor with these
// placements.
std::size_t extent(const Step& step, const StepRanks& ranks, const Dim& dim,
                   const Placements& placements, int rank);
double local_bytes(const Step& step, const StepRanks& ranks, const Tensor& tensor,
                   const Placements& placements, int rank);

}  // namespace unisono::step
