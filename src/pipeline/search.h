// Betters orders of a pipeline, step by step.
#pragma once

#include <cstdint>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct SearchLimits {
  double most_bytes = 0;  // on each rank
  double work = 0;        // how many tasks may be timed
  double enough = 0;      // a makespan that is as good as any
};

// Moves single tasks where the longest path goes through, and keeps the best order: never longer
// than the one given. No rank comes to hold more than `most_bytes`, if none does before.
void better(const Tasks& tasks, Orders& orders, const SearchLimits& limits, std::uint64_t seed);

}  // namespace unisono::pipeline
