// A lower bound on the time of any order of a pipeline.
#pragma once

#include "pipeline/orders.h"

namespace unisono::pipeline {

// Returns the maximum over the ranks of two sums. First, a rank does all its work after its first F
// has arrived. Second, before its first I, for which a microbatch must go to the end of its chain
// and back, a rank can only do F, as many as `most_bytes` of activations allow; everything else
// comes after that.
double least_makespan(const Tasks& tasks, double most_bytes);

}  // namespace unisono::pipeline
