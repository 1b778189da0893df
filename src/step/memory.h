// Computes the memory that a step needs on each rank.
#pragma once

#include <vector>

#include "step/step.h"

namespace unisono::step {

// In bytes.
struct Memory {
  double weights = 0;
  double cache = 0;
  double activations = 0;  // the most held at any time
  double total() const { return weights + cache + activations; }
};

// Returns the memory by rank. With a pipeline, tensors that passes write and only passes read count
// once per microbatch in progress. REQUIRES: verify() finds nothing.
std::vector<Memory> memory_of(const Step& step);

}  // namespace unisono::step
