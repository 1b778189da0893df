// Sums of whole rows with one factor each: what brings the outputs of a token's experts together.
#pragma once

#include <cstddef>

#include "unisono/types.hpp"

namespace unisono::kernels {

// target[i] = addend[i] + factors[0] * rows[0][i] + factors[1] * rows[1][i] + ..., from left to
// right, for i < count. All in f32 (f64 for f64) with one rounding to the dtype at the end; product
// and sum are rounded each, so that every instruction set gives the same bits. `factors` nullptr:
// all are 1. `addend` nullptr: 0. target may be equal to addend or to a row. Never throws.
using WeightedSumFunction = void (*)(void* target, const void* addend, const void* const* rows,
                                     const float* factors, int row_count, std::size_t count);

// The sum of a[i] * b[i], in f32 (f64 for f64); the order of the summands is that of the
// instruction set's lanes.
using DotFunction = float (*)(const void* a, const void* b, std::size_t count);

// nullptr: the dtype is no float.
WeightedSumFunction find_weighted_sum(Dtype dtype);
DotFunction find_dot(Dtype dtype);

}  // namespace unisono::kernels
