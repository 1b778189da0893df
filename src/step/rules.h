// Derives the placement of tensors after a node, and finds invalid placements.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "step/finding.h"
#include "step/ranks.h"
#include "step/step.h"

namespace unisono::step {

// The placements of a stage's tensors; a tensor that does not exist has no entry.
using State = std::map<std::string, Placements>;

// Applies the node to the state of its stage. Adds a tensor that the node cannot produce as if it
// were correct, so that one error is reported once. walk() handles tensors that stages exchange.
void apply(const Step& step, const StepRanks& ranks, const Node& node, State& state,
           std::vector<Finding>& findings);

}  // namespace unisono::step
