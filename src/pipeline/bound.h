// What no order of a pipeline can be quicker than.
#pragma once

#include "pipeline/orders.h"

namespace unisono::pipeline {

// The largest over the ranks of two sums. A rank does all its work after a first F has come to it.
// And before its first I, for which a microbatch has gone to the end of its chain and come back, it
// can only do F, as many as `most_bytes` of activations allow; all else comes after that.
double least_makespan(const Tasks& tasks, double most_bytes);

}  // namespace unisono::pipeline
