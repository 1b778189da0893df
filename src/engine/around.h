// The conversions around the program of a reduction: on the input before the program starts, on
// each contribution when it is first summed, and on the output after the program ends.
#pragma once

#include "engine/execution.h"
#include "kernels/kernels.h"
#include "unisono/types.hpp"

namespace unisono::engine {

struct Around {
  Dtype moved = Dtype::u8;                  // type of the elements that the program works on
  kernels::ScaleFunction before = nullptr;  // nullptr: nothing to do
  kernels::ScaleFunction after = nullptr;   // nullptr: nothing to do
  // nullptr if the program sums with the plain operation.
  kernels::ScaledSumFunction scaled_sum = nullptr;
  double scale = 1;    // factor of `before` or `scaled_sum`; with premul_sum from the call
  double divisor = 1;  // divisor of `after`; if that fills the output, the ReduceOp
};

// Returns the conversions of a call:
// - premul_sum multiplies the input before the program.
// - avg divides the output after the program. Integers of up to 32 bits, and floats of fewer than
//   32, are widened before the program and narrowed after it. With floats, avg scales each
//   contribution (kernels::average_scale): before the program, or when the contribution is first
//   summed.
// - land, lor and lxor of one contribution convert the output to 0 or 1, because the program only
//   copies a single source.
// - exclusive_scan on rank 0 fills the output with the operation's identity after the program.
// - Collectives that do not reduce have no conversions.
Around around(Collective collective, Dtype dtype, ReduceOp op, int rank, int ranks);

// Returns true if `after` fills the output of this rank, which the program does not write.
bool fills_output(Collective collective, ReduceOp op, int rank);

// Returns the function with which the program combines elements. Empty for a user-defined
// operation, and for a collective that does not reduce.
Reducer reducer_of(Collective collective, ReduceOp op, const Around& around);

}  // namespace unisono::engine
