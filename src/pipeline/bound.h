// A lower bound on the time of any order of a pipeline.
#pragma once

#include "pipeline/orders.h"

namespace unisono::pipeline {

// Returns the largest lower bound of any rank. Each rank has two lower bounds. First, a rank does
// all its work after its first F has become possible. Second, a microbatch must go to the end of
// its chain and back before the rank's first I. Until then the rank can only do F, at most as many
// as `most_bytes` of activations allow; it does all other work afterwards.
double least_makespan(const Tasks& tasks, double most_bytes);

}  // namespace unisono::pipeline
