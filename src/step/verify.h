// Proves that a step gives what one process would: no summand is read as if it were whole, nothing
// whole is summed once for each rank, parts are only used where parts are enough, what is read is
// there, on its stage, and what is written is read. The rules are those of sharding propagation
// (GSPMD: Xu et al., 2021).
//
// No ranks of it wait for each other: all go through one order of nodes, and a collective, a send
// and its receive are one node. The order of a pipeline's passes is proved by pipeline::verify().
#pragma once

#include <vector>

#include "step/finding.h"
#include "step/step.h"

namespace unisono::step {

inline constexpr std::size_t kMostFindings = 100;

// REQUIRES: problem_of(step) is empty.
std::vector<Finding> verify(const Step& step);

}  // namespace unisono::step
