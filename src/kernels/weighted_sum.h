// Sums whole rows with one factor per row, which combines the outputs of a token's experts.
#pragma once

#include <cstddef>

#include "unisono/types.hpp"

namespace unisono::kernels {

// Computes target[i] = addend[i] + factors[0] * rows[0][i] + factors[1] * rows[1][i] + ..., from
// left to right, for i < count. Computes in f32, or in f64 if the dtype is f64, and rounds to the
// dtype once at the end. Products and sums are rounded separately, so that every instruction set
// gives the same bits. If `factors` is nullptr, all factors are 1. If `addend` is nullptr, it
// counts as 0. target may be equal to addend or to a row. Never throws.
using WeightedSumFunction = void (*)(void* target, const void* addend, const void* const* rows,
                                     const float* factors, int row_count, std::size_t count);

// Returns the sum of a[i] * b[i], in f32 (f64 for f64). The order of addition depends on the
// instruction set.
using DotFunction = float (*)(const void* a, const void* b, std::size_t count);

// Return nullptr if the dtype is not a float.
WeightedSumFunction find_weighted_sum(Dtype dtype);
DotFunction find_dot(Dtype dtype);

}  // namespace unisono::kernels
