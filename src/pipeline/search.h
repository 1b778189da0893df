// Improves orders of a pipeline step by step.
#pragma once

#include <cstdint>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct SearchLimits {
  double most_bytes = 0;  // on each rank
  double work = 0;        // number of tasks that may be timed
  double enough = 0;      // a makespan that need not be improved
};

// Moves single tasks on the longest path, and keeps the best order, which is never longer than the
// given one. No rank exceeds `most_bytes`, if none does before.
void better(const Tasks& tasks, Orders& orders, const SearchLimits& limits, std::uint64_t seed);

}  // namespace unisono::pipeline
