// The processing around the program of a reduction: of the input before it begins, and of the
// output after its end.
#pragma once

#include "kernels/kernels.h"
#include "unisono/types.hpp"

namespace unisono::engine {

struct Around {
  Dtype moved = Dtype::u8;                  // type of the elements that the program works on
  kernels::ScaleFunction before = nullptr;  // nullptr: nothing to do
  kernels::ScaleFunction after = nullptr;   // likewise
  double scale = 1;                         // factor of `before`; for premul_sum the call's
  double divisor = 1;                       // of `after`
};

// Returns the processing for an operation:
// - premul_sum is multiplied before.
// - avg is divided after. Integers of up to 32 bits, and narrower floats, are widened before and
//   narrowed after. Such floats are multiplied before by the power of two that keeps the sum of all
//   ranks in the range of f32, which is exact.
// - land, lor and lxor on one rank are converted to 0 or 1 after, because a single source is only
//   copied.
// - Collectives that do not reduce need no processing.
Around around(Collective collective, Dtype dtype, ReduceOp op, int ranks);

}  // namespace unisono::engine
