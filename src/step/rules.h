// How tensors lie after a node, and what is wrong where they cannot.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "step/finding.h"
#include "step/ranks.h"
#include "step/step.h"

namespace unisono::step {

// Where the tensors of a stage are; one that is not there has no row.
using State = std::map<std::string, Placements>;

// What the node does to the state of its stage. A tensor that it cannot give is there afterwards as
// if nothing were wrong, so that one mistake is told once. What stages give each
// other is for walk().
void apply(const Step& step, const StepRanks& ranks, const Node& node, State& state,
           std::vector<Finding>& findings);

}  // namespace unisono::step
