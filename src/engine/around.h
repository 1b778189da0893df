// What is done around the program of a reduction: with the input before it begins, and with the
// output when it has come to its end.
#pragma once

#include "kernels/kernels.h"
#include "unisono/types.hpp"

namespace unisono::engine {

struct Around {
  Dtype moved = Dtype::u8;                  // of the elements that the program works on
  kernels::ScaleFunction before = nullptr;  // nullptr: nothing to do
  kernels::ScaleFunction after = nullptr;   // likewise
  double scale = 1;    // what `before` multiplies by; of premul_sum: the call's
  double divisor = 1;  // of `after`
};

// premul_sum is multiplied before. avg is divided after; of integers of up to 32 bits, and floats
// of less, it is widened before and narrowed after. Such floats are multiplied before by the power
// of two that keeps the sum of all ranks in the range of f32, which is exact. land, lor and lxor of
// one rank become 0 or 1 after, as a single source is only copied. A collective that reduces
// nothing has nothing around it.
Around around(Collective collective, Dtype dtype, ReduceOp op, int ranks);

}  // namespace unisono::engine
