// The memory that a step needs on each rank.
#pragma once

#include <vector>

#include "step/step.h"

namespace unisono::step {

// In bytes.
struct Memory {
  double weights = 0;
  double cache = 0;
  double activations = 0;  // the most that are held at once
  double total() const { return weights + cache + activations; }
};

// By rank. With a pipeline, what its passes write and nothing but passes reads is held once for
// each microbatch that is under way. REQUIRES: verify() finds nothing.
std::vector<Memory> memory_of(const Step& step);

}  // namespace unisono::step
