// Walks through a step as its ranks do. With a pipeline, one microbatch of each chain represents
// all microbatches.
#pragma once

#include <functional>
#include <vector>

#include "step/rules.h"

namespace unisono::step {

struct Visit {
  const Section& section;
  int stage = 0;   // in a section of all stages: each stage in turn
  int layer = -1;  // -1: no layer
  const Node& node;
  const State& before;  // state of the stage for the node's tensors
  const State& after;
};

// Returns the passes of a pipeline action, in order.
std::vector<StagePass> passes_of(pipeline::ActionKind kind);

// Calls `visit` for every node of every layer, in order, for at most `most_layers` layers of a
// repeating section. Returns the final states of the stages.
std::vector<State> walk(const Step& step, const StepRanks& ranks, int most_layers,
                        std::vector<Finding>& findings,
                        const std::function<void(const Visit&)>& visit);

}  // namespace unisono::step
