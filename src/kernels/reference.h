// The reductions one element at a time, in plain scalar code: what the kernels are tested against.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unisono/types.hpp"

namespace unisono::kernels {

// `operands`: the raw bits of one element of each source, in order. nullopt: not supported.
std::optional<std::uint64_t> reference(Dtype dtype, ReduceOp op,
                                       const std::vector<std::uint64_t>& operands);

// Returns true if the raw bits are a NaN of a float dtype.
bool is_nan(Dtype dtype, std::uint64_t bits);

// A raw value that is likely to be a hard case: any bits, small integers, limits, NaN, infinity,
// subnormals, zeros of both signs.
std::uint64_t hard_value(Dtype dtype, std::uint64_t random);

}  // namespace unisono::kernels
