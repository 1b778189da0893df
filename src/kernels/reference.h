// Scalar reductions, one element at a time, against which the kernels are tested.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unisono/types.hpp"

namespace unisono::kernels {

// Returns the raw bits of the result, or nullopt if the pair is not supported. `operands`: raw bits
// of one element of each source, in order.
std::optional<std::uint64_t> reference(Dtype dtype, ReduceOp op,
                                       const std::vector<std::uint64_t>& operands);

// Returns true if the dtype is a float and the raw bits are NaN.
bool is_nan(Dtype dtype, std::uint64_t bits);

// Returns raw bits that are likely to be a hard case: random bits, small integers, limits, NaN,
// infinity, subnormals, or a zero of either sign.
std::uint64_t hard_value(Dtype dtype, std::uint64_t random);

}  // namespace unisono::kernels
