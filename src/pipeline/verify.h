// Verifies a pipeline across its ranks: every computation is done once and on its rank, after its
// input; every message is sent once and received once, in the same order at both ends of a lane;
// and ranks do not deadlock with the lanes' capacity.
#pragma once

#include <vector>

#include "pipeline/findings.h"
#include "pipeline/pipeline.h"

namespace unisono::pipeline {

struct Verdict {
  std::vector<Finding> findings = {};  // at most 100
  // The least capacity of lanes without a deadlock; -1: there is none, or the order is wrong.
  int least_capacity = -1;
  std::vector<double> peak_bytes = {};  // of each rank
  std::vector<int> peak_activations = {};

  bool right() const { return findings.empty(); }
};

// REQUIRES: check() passes. Adds the transfers first if the pipeline has none.
Verdict verify(const Pipeline& pipeline);

}  // namespace unisono::pipeline
