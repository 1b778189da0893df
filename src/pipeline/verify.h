// Verifies a pipeline across its ranks. Every computation is done once, on its rank, and after its
// input. Every message is sent once and received once, in the same order at both ends of a lane.
// The ranks do not deadlock with the lanes' capacity.
#pragma once

#include <vector>

#include "pipeline/findings.h"
#include "pipeline/pipeline.h"

namespace unisono::pipeline {

struct Verdict {
  std::vector<Finding> findings = {};  // at most 100
  // The least lane capacity without a deadlock; -1: no capacity avoids it, or the order is wrong.
  int least_capacity = -1;
  std::vector<double> peak_bytes = {};  // by rank
  std::vector<int> peak_activations = {};

  bool right() const { return findings.empty(); }
};

// REQUIRES: check() passes. Adds the transfers first if the pipeline has none.
Verdict verify(const Pipeline& pipeline);

}  // namespace unisono::pipeline
