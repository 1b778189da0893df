#include "step/walk.h"

#include <algorithm>

namespace unisono::step {
namespace {

// Weights, caches and inputs exist from the beginning on the stages that use them; activations are
// computed.
State state_at_first(const Step& step) {
  State state;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.kind != Tensor::Kind::activation) {
      state[tensor.name] = tensor.placement;
    }
  }
  return state;
}

// Returns the part of the state that concerns the node's tensors.
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

class Walk {
 public:
  Walk(const Step& step, const StepRanks& ranks, std::vector<Finding>& findings,
       const std::function<void(const Visit&)>& visit)
      : step_(step),
        ranks_(ranks),
        findings_(findings),
        visit_(visit),
        states_(static_cast<std::size_t>(ranks.stages()), state_at_first(step)) {}

  std::vector<State> run(int most_layers) {
    for (const Section& section : step_.sections) {
      for (int i = 0; i < std::min(section.repeat, most_layers); ++i) {
        const int layer = section.first_layer < 0 ? -1 : section.first_layer + i;
        for (const Node& node : section.nodes) {
          if (section.stage != kAllStages) {
            go(section, section.stage, layer, node);
          } else if (node.kind == Node::Kind::sum_stages) {
            sum_stages(section, node);
          } else {
            for (int stage = 0; stage < ranks_.stages(); ++stage) {
              go(section, stage, layer, node);
            }
          }
        }
      }
    }
    return std::move(states_);
  }

 private:
  State& state(int stage) { return states_[static_cast<std::size_t>(stage)]; }

  void add(const Section& section, Finding finding) {
    finding.section = section.name;
    findings_.push_back(std::move(finding));
  }

  void go(const Section& section, int stage, int layer, const Node& node) {
    const State before = part_of(state(stage), node);
    std::vector<Finding> found;
    apply(step_, ranks_, node, state(stage), found);
    for (Finding& finding : found) {
      add(section, std::move(finding));
    }
    if (node.kind == Node::Kind::broadcast) {
      for (int other = 0; other < ranks_.stages(); ++other) {
        give(node, before, other);
      }
    } else if (node.kind == Node::Kind::send) {
      give(node, before, ranks_.sends_to(section));
    }
    visit_({.section = section,
            .stage = stage,
            .layer = layer,
            .node = node,
            .before = before,
            .after = state(stage)});
  }

  void give(const Node& node, const State& before, int stage) {
    for (std::size_t k = 0; stage >= 0 && k < node.reads.size(); ++k) {
      state(stage)[node.writes[k]] =
          before.contains(node.reads[k]) ? before.at(node.reads[k]) : Placements{};
    }
  }

  // Stages that have a summand must have it with equal placements; stages without one add nothing.
  void sum_stages(const Section& section, const Node& node) {
    std::vector<State> before;
    for (const State& one : states_) {
      before.push_back(part_of(one, node));
    }
    for (std::size_t k = 0; k < node.reads.size(); ++k) {
      const std::string& name = node.reads[k];
      const auto first = std::find_if(before.begin(), before.end(),
                                      [&](const State& one) { return one.contains(name); });
      if (first == before.end()) {
        add(section, {.kind = Finding::Kind::not_there, .node = node.name, .tensor = name});
        continue;
      }
      Placements summed = first->at(name);
      for (std::size_t stage = 0; stage < before.size(); ++stage) {
        if (before[stage].contains(name) && before[stage].at(name) != summed) {
          add(section, {.kind = Finding::Kind::stages_differ,
                        .node = node.name,
                        .tensor = name,
                        .stage = static_cast<int>(stage)});
        }
      }
      if (ranks_.size(step_.stage_axis) > 1) {
        summed[step_.stage_axis] = partial();
      }
      for (State& one : states_) {
        one[node.writes[k]] = summed;
      }
    }
    for (int stage = 0; stage < ranks_.stages(); ++stage) {
      visit_({.section = section,
              .stage = stage,
              .node = node,
              .before = before[static_cast<std::size_t>(stage)],
              .after = state(stage)});
    }
  }

  const Step& step_;
  const StepRanks& ranks_;
  std::vector<Finding>& findings_;
  const std::function<void(const Visit&)>& visit_;
  std::vector<State> states_;
};

}  // namespace

std::vector<StagePass> passes_of(pipeline::ActionKind kind) {
  using pipeline::ActionKind;
  switch (kind) {
    case ActionKind::forward:
      return {StagePass::forward};
    case ActionKind::backward:
      return {StagePass::backward_input, StagePass::backward_weight};
    case ActionKind::backward_input:
      return {StagePass::backward_input};
    case ActionKind::backward_weight:
      return {StagePass::backward_weight};
    default:
      return {};
  }
}

std::vector<State> walk(const Step& step, const StepRanks& ranks, int most_layers,
                        std::vector<Finding>& findings,
                        const std::function<void(const Visit&)>& visit) {
  return Walk(step, ranks, findings, visit).run(most_layers);
}

}  // namespace unisono::step
