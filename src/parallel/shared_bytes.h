// Finds tensors that share memory.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// Returns true if two tensors share a byte. Strided tensors may lie between each other's elements.
// If strides are so irregular that the search takes too long, returns true.
bool share_bytes(const Tensor& a, const Tensor& b);

// Returns the indices of the first pair of `a` and `b` that shares a byte. Tensors with null data
// are ignored.
std::optional<std::pair<std::size_t, std::size_t>> find_shared_bytes(std::span<const Tensor> a,
                                                                     std::span<const Tensor> b);

}  // namespace unisono::parallel
