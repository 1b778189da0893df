// Goes through a step as its ranks do: with a pipeline, one microbatch of each chain stands for
// all.
#pragma once

#include <functional>
#include <vector>

#include "step/rules.h"

namespace unisono::step {

struct Visit {
  const Section& section;
  int stage = 0;   // one after the other, in a section of all stages
  int layer = -1;  // -1: of no layer
  const Node& node;
  const State& before;  // of the stage, what the node reads and writes
  const State& after;
};

// Returns the passes of a pipeline action, in order.
std::vector<StagePass> passes_of(pipeline::ActionKind kind);

// Calls `visit` for every node of every layer, in order. At most `most_layers` of a section that
// repeats. Returns the states of the stages in the end.
std::vector<State> walk(const Step& step, const StepRanks& ranks, int most_layers,
                        std::vector<Finding>& findings,
                        const std::function<void(const Visit&)>& visit);

}  // namespace unisono::step
