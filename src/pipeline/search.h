// Betters orders of a pipeline, step by step.
#pragma once

#include <cstdint>

#include "pipeline/orders.h"

namespace unisono::pipeline {

// Moves single tasks where the longest path goes through, and keeps what is not longer. `work`: how
// many tasks may be timed. No rank comes to hold more than `most_bytes`, if none does before.
void better(const Tasks& tasks, Orders& orders, double most_bytes, std::uint64_t seed, double work);

}  // namespace unisono::pipeline
