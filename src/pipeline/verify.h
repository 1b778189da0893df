// Is a pipeline right, across its ranks? Every computation once and on its rank, its input there
// before it, every message sent once and received once and in the same order at both ends of a
// lane, and no ranks that wait for each other with the capacity that the lanes have.
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

// REQUIRES: check() passes. Transfers that the pipeline lacks altogether are added first.
Verdict verify(const Pipeline& pipeline);

}  // namespace unisono::pipeline
