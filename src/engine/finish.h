// What is left to do when a reduction has come to its end.
#pragma once

#include "kernels/kernels.h"

namespace unisono::engine {

// What the output of a reduction of so many ranks goes through, with the number of ranks as its
// factor; nullptr: nothing. avg is divided. land, lor and lxor of one rank become 0 or 1, as a
// single source is only copied.
kernels::ScaleFunction find_finish(Dtype dtype, ReduceOp op, int ranks);

}  // namespace unisono::engine
