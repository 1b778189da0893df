// The work around the program of a reduction: with the input before it begins, with each
// contribution where it is first summed, and with the output when it has come to its end.
#pragma once

#include "engine/execution.h"
#include "kernels/kernels.h"
#include "unisono/types.hpp"

namespace unisono::engine {

struct Around {
  Dtype moved = Dtype::u8;                  // type of the elements that the program works on
  kernels::ScaleFunction before = nullptr;  // nullptr: nothing to do
  kernels::ScaleFunction after = nullptr;   // likewise
  // nullptr: sums as the operation says.
  kernels::ScaledSumFunction scaled_sum = nullptr;
  double scale = 1;    // what `before` or `scaled_sum` multiplies by; of premul_sum: the call's
  double divisor = 1;  // of `after`
};

// premul_sum is multiplied before. avg is divided after; of integers of up to 32 bits, and floats
// of less, it is widened before and narrowed after. avg of floats scales each contribution
// (kernels::average_scale): before, or where it is first summed. land, lor and lxor of one rank
// become 0 or 1 after, as a single source is only copied. A collective that reduces nothing has
// nothing around it.
Around around(Collective collective, Dtype dtype, ReduceOp op, int ranks);

// The function that its program combines with. Empty for a function of the user's, and where
// nothing is reduced.
Reducer reducer_of(Collective collective, ReduceOp op, const Around& around);

}  // namespace unisono::engine
