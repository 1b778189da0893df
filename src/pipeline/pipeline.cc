#include "pipeline/pipeline.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace unisono::pipeline {
namespace {

constexpr std::array<std::string_view, 12> kNames = {
    "F",      "B",      "I",           "W",       "SEND_F",  "RECV_F",
    "SEND_B", "RECV_B", "REDUCE_GRAD", "UNSHARD", "RESHARD", "OVERLAP_F_B"};

bool are_amounts(const std::vector<double>& values, int stages) {
  return static_cast<int>(values.size()) == stages &&
         std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value) && value >= 0; });
}

std::optional<std::string> check_chains(const Pipeline& pipeline) {
  std::vector<bool> seen(pipeline.stage_rank.size(), false);
  int microbatches = 0;
  for (const Chain& chain : pipeline.chains) {
    if (chain.stages.empty() || chain.count < 1 || chain.first != microbatches) {
      return "each chain needs stages, and microbatches that follow those of the previous chain";
    }
    if (chain.count > pipeline.microbatches - microbatches) {
      return "the chains have more microbatches than the pipeline";
    }
    microbatches += chain.count;
    for (const int stage : chain.stages) {
      if (stage < 0 || stage >= pipeline.stages() || seen[static_cast<std::size_t>(stage)]) {
        return "every stage must be in exactly one chain";
      }
      seen[static_cast<std::size_t>(stage)] = true;
    }
  }
  if (microbatches != pipeline.microbatches ||
      std::find(seen.begin(), seen.end(), false) != seen.end()) {
    return "the chains must cover all stages and all microbatches";
  }
  return std::nullopt;
}

std::optional<std::string> check_actions(const Pipeline& pipeline) {
  std::size_t total = 0;
  for (const std::vector<Action>& actions : pipeline.actions) {
    total += actions.size();
    std::size_t inside = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (action.kind == ActionKind::overlap) {
        if (inside != 0 || action.parts < 1 ||
            static_cast<std::size_t>(action.parts) >= actions.size() - i) {
          return "an overlap needs parts, none of which is an overlap";
        }
        inside = static_cast<std::size_t>(action.parts);
        continue;
      }
      if (action.stage < 0 || action.stage >= pipeline.stages()) {
        return to_string(action) + " belongs to a stage that the pipeline does not have";
      }
      const bool wants = has_microbatch(action.kind);
      if (wants ? action.microbatch < 0 || action.microbatch >= pipeline.microbatches
                : action.microbatch != -1) {
        return to_string(action) + " belongs to a microbatch that the pipeline does not have";
      }
      if (inside != 0 && !is_compute(action.kind)) {
        return to_string(action) + " is in an overlap, which may contain only F, B, I and W";
      }
      inside -= inside != 0 ? 1 : 0;
    }
  }
  return total > kMostActions ? std::optional<std::string>("it has too many actions")
                              : std::nullopt;
}

}  // namespace

Neighbours neighbours(const Pipeline& pipeline) {
  const std::size_t stages = pipeline.stage_rank.size();
  Neighbours result{.before = std::vector<int>(stages, -1),
                    .next = std::vector<int>(stages, -1),
                    .chain = std::vector<int>(stages, 0)};
  for (std::size_t c = 0; c < pipeline.chains.size(); ++c) {
    int before = -1;
    for (const int stage : pipeline.chains[c].stages) {
      result.chain[static_cast<std::size_t>(stage)] = static_cast<int>(c);
      result.before[static_cast<std::size_t>(stage)] = before;
      if (before >= 0) {
        result.next[static_cast<std::size_t>(before)] = stage;
      }
      before = stage;
    }
  }
  return result;
}

bool is_compute(ActionKind kind) {
  return kind <= ActionKind::backward_weight;
}

bool is_send(ActionKind kind) {
  return kind == ActionKind::send_forward || kind == ActionKind::send_backward;
}

bool is_receive(ActionKind kind) {
  return kind == ActionKind::receive_forward || kind == ActionKind::receive_backward;
}

bool is_forward_lane(ActionKind kind) {
  return kind == ActionKind::send_forward || kind == ActionKind::receive_forward;
}

bool has_microbatch(ActionKind kind) {
  return kind <= ActionKind::receive_backward;
}

std::string_view to_string(ActionKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::string to_string(const Action& action) {
  if (action.kind == ActionKind::overlap) {
    return std::string(to_string(action.kind));
  }
  std::string text = std::to_string(action.stage) + std::string(to_string(action.kind));
  return action.microbatch < 0 ? text : text + std::to_string(action.microbatch);
}

std::size_t after(const std::vector<Action>& actions, std::size_t index) {
  return index + 1 + static_cast<std::size_t>(actions[index].parts);
}

void set_unit_costs(Pipeline& pipeline) {
  const auto fill = [&](std::vector<double>& values, double value) {
    if (values.empty()) {
      values.assign(pipeline.stage_rank.size(), value);
    }
  };
  fill(pipeline.costs.forward, 1);
  fill(pipeline.costs.input, 1);
  fill(pipeline.costs.weight, 1);
  fill(pipeline.costs.transfer, 0);
  fill(pipeline.memory.activation_bytes, 1);
  fill(pipeline.memory.kept_bytes, 1);
}

std::optional<std::string> check(const Pipeline& pipeline) {
  if (pipeline.ranks < 1 || pipeline.ranks > kMostRanks) {
    return "a pipeline has 1 to 4096 ranks";
  }
  if (pipeline.stages() < 1 || pipeline.stages() > kMostStages) {
    return "a pipeline has 1 to 16384 stages";
  }
  if (pipeline.microbatches < 1 || pipeline.microbatches > kMostMicrobatches) {
    return "a pipeline has 1 to 65536 microbatches";
  }
  if (pipeline.stage_rank.size() * static_cast<std::size_t>(pipeline.microbatches) > kMostActions) {
    return "a pipeline has at most 4194304 stages times microbatches";
  }
  if (std::any_of(pipeline.stage_rank.begin(), pipeline.stage_rank.end(),
                  [&](int rank) { return rank < 0 || rank >= pipeline.ranks; })) {
    return "a stage is on a rank that the pipeline does not have";
  }
  if (pipeline.lanes != 1 && pipeline.lanes != 2) {
    return "there must be one or two lanes between two ranks";
  }
  if (pipeline.capacity < 0) {
    return "the capacity of a lane must be 0 or more";
  }
  if (static_cast<int>(pipeline.actions.size()) != pipeline.ranks) {
    return "each rank needs a list of actions";
  }
  const int stages = pipeline.stages();
  const Costs& costs = pipeline.costs;
  if (!are_amounts(costs.forward, stages) || !are_amounts(costs.input, stages) ||
      !are_amounts(costs.weight, stages) || !are_amounts(costs.transfer, stages)) {
    return "the costs need one number of 0 or more for each stage";
  }
  if (!are_amounts(pipeline.memory.activation_bytes, stages) ||
      !are_amounts(pipeline.memory.kept_bytes, stages)) {
    return "the memory needs one number of 0 or more for each stage";
  }
  if (const auto problem = check_chains(pipeline)) {
    return problem;
  }
  return check_actions(pipeline);
}

}  // namespace unisono::pipeline
