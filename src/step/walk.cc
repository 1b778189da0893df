#include "step/walk.h"

#include <algorithm>

namespace unisono::step {
namespace {

// Weights, caches and inputs lie where they are used; activations are made.
State state_at_first(const Step& step) {
  State state;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.kind != Tensor::Kind::activation) {
      state[tensor.name] = tensor.placement;
    }
  }
  return state;
}

// What a state says of the tensors that a node reads and writes.
State part_of(const State& state, const Node& node) {
  State part;
  for (const auto* names : {&node.reads, &node.writes}) {
    for (const std::string& name : *names) {
      if (const auto found = state.find(name); found != state.end()) {
        part.insert(*found);
      }
    }
  }
  return part;
}

}  // namespace

std::vector<State> walk(const Step& step, const parallel::MeshShape& mesh, int most_layers,
                        std::vector<Finding>& findings,
                        const std::function<void(const Visit&)>& visit) {
  std::vector<State> states(static_cast<std::size_t>(step.stages()), state_at_first(step));
  for (const Section& section : step.sections) {
    State& state = states[static_cast<std::size_t>(section.stage)];
    for (int i = 0; i < std::min(section.repeat, most_layers); ++i) {
      for (const Node& node : section.nodes) {
        const State before = part_of(state, node);
        std::vector<Finding> found;
        apply(step, mesh, node, state, found);
        for (Finding& finding : found) {
          finding.section = section.name;
          findings.push_back(std::move(finding));
        }
        if (node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast) {
          for (int stage = 0; stage < step.stages(); ++stage) {
            if (node.kind == Node::Kind::broadcast || stage == section.stage + 1) {
              for (std::size_t k = 0; k < node.reads.size(); ++k) {
                states[static_cast<std::size_t>(stage)][node.writes[k]] =
                    before.contains(node.reads[k]) ? before.at(node.reads[k]) : Placements{};
              }
            }
          }
        }
        visit({.section = section,
               .layer = section.first_layer < 0 ? -1 : section.first_layer + i,
               .node = node,
               .before = before,
               .after = state});
      }
    }
  }
  return states;
}

}  // namespace unisono::step
