// Improves orders of a pipeline step by step.
#pragma once

#include <cstdint>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct SearchLimits {
  double most_bytes = 0;  // per rank
  double work = 0;        // number of tasks that may be timed
  double enough = 0;      // stop at this makespan
};

// Moves single tasks on the longest path, and returns the best order, which is never longer than
// the given one. No rank exceeds `most_bytes` if none did before.
void better(const Tasks& tasks, Orders& orders, const SearchLimits& limits, std::uint64_t seed);

}  // namespace unisono::pipeline
