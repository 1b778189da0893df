// Multiplication and division of the float dtypes, for the best SIMD target of this CPU; nullptr
// for other dtypes.
#pragma once

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

ScaleFunction find_multiply_float(Dtype dtype);
ScaleFunction find_divide_float(Dtype dtype);
// Conversions to f32 and back, of the types that are summed in it.
ScaleFunction find_widen_float(Dtype dtype);
ScaleFunction find_average_float(Dtype dtype);

}  // namespace unisono::kernels
