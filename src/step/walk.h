// Goes through a step as its ranks do.
#pragma once

#include <functional>
#include <vector>

#include "step/rules.h"

namespace unisono::step {

struct Visit {
  const Section& section;
  int layer = -1;  // -1: of no layer
  const Node& node;
  const State& before;  // of the node's stage, what it reads and writes
  const State& after;
};

// Calls `visit` for every node of every layer, in order. At most `most_layers` of a section that
// repeats. Returns the states of the stages in the end.
std::vector<State> walk(const Step& step, const parallel::MeshShape& mesh, int most_layers,
                        std::vector<Finding>& findings,
                        const std::function<void(const Visit&)>& visit);

}  // namespace unisono::step
