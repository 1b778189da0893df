// How much of a tensor a rank has.
#pragma once

#include <cstddef>

#include "step/ranks.h"

namespace unisono::step {

// How many elements of a dimension a rank has of a tensor that lies so.
std::size_t extent(const Step& step, const StepRanks& ranks, const Dim& dim,
                   const Placements& placements, int rank);
double local_bytes(const Step& step, const StepRanks& ranks, const Tensor& tensor,
                   const Placements& placements, int rank);

}  // namespace unisono::step
