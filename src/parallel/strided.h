// Walks the elements of tensors with equal shapes and different memory layouts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/functions.h"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// Returns the elements of a box, in memory that holds the elements `held`.
Tensor view_of(const Tensor& tensor, const ElementRanges& held, const std::vector<Range>& box);

// Copies `in` to `out`. REQUIRES: equal shape and dtype; memory that is identical or does not
// overlap.
void copy_elements(const Tensor& in, const Tensor& out, kernels::Store store);

// Combines `count` elements of all sources into one target.
using Combine = std::function<void(void* target, const void* const* sources, std::size_t count)>;

// Writes the combined sources to `out`; combines them in order. REQUIRES: as above; at most
// kernels::kMaxSources sources.
void reduce_elements(std::span<const Tensor> sources, const Tensor& out, const Combine& combine,
                     kernels::Store store);

// Multiplies or divides by `factor` in place, as `scale` does.
void scale_elements(const Tensor& tensor, kernels::ScaleFunction scale, double factor);

void fill_with_zeros(const Tensor& tensor);

// Returns how to store this many bytes that are not read again soon.
kernels::Store store_for(std::size_t bytes);

}  // namespace unisono::parallel
