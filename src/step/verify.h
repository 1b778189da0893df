// Proves that a step computes the same as one process:
// - no partial sum is read as if it were whole;
// - no replicated tensor is summed once per rank;
// - shards are used only where shards suffice;
// - every tensor that is read exists on its stage;
// - every tensor that is written is read.
// The rules are the rules of sharding propagation (GSPMD: Xu et al., 2021).
//
// The ranks cannot deadlock, because all ranks run the nodes in the same order. A collective is one
// node, and a send is one node with its receive. pipeline::verify() proves the order of a
// pipeline's passes.
#pragma once

#include <vector>

#include "step/finding.h"
#include "step/step.h"

namespace unisono::step {

inline constexpr std::size_t kMostFindings = 100;

// REQUIRES: problem_of(step) is empty.
std::vector<Finding> verify(const Step& step);

}  // namespace unisono::step
