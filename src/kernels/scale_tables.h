// Find functions that multiply or divide float dtypes, for the best SIMD target of this CPU. Return
// nullptr for other dtypes.
#pragma once

#include "kernels/functions.h"
#include "unisono/types.hpp"

namespace unisono::kernels {

ScaleFunction find_multiply_float(Dtype dtype);
ScaleFunction find_divide_float(Dtype dtype);
// Find conversions to f32 and back, for the types that are summed in f32.
ScaleFunction find_widen_float(Dtype dtype);
ScaleFunction find_average_float(Dtype dtype);

}  // namespace unisono::kernels
