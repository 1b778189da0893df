#include "pipeline/stage_actions.h"

#include <utility>
#include <vector>

namespace unisono::pipeline {
namespace {

struct Stage {
  bool is_gathered = false;
  bool is_reduced = false;
  bool is_freed = false;
  std::size_t left = 0;  // remaining computations
  bool has_begun = false;
};

std::vector<Stage> stages_of(const Pipeline& from, const Pipeline& to) {
  std::vector<Stage> stages(from.stage_rank.size());
  for (const std::vector<Action>& actions : from.actions) {
    for (const Action& action : actions) {
      if (action.stage >= 0) {
        Stage& stage = stages[static_cast<std::size_t>(action.stage)];
        stage.is_gathered = stage.is_gathered || action.kind == ActionKind::unshard;
        stage.is_reduced = stage.is_reduced || action.kind == ActionKind::reduce_grad;
        stage.is_freed = stage.is_freed || action.kind == ActionKind::reshard;
      }
    }
  }
  for (const std::vector<Action>& actions : to.actions) {
    for (const Action& action : actions) {
      if (is_compute(action.kind)) {
        ++stages[static_cast<std::size_t>(action.stage)].left;
      }
    }
  }
  return stages;
}

// Adds the actions before the computations [first, end), which may be the parts of an overlap.
void begin(const Action* first, const Action* end, std::vector<Stage>& stages,
           std::vector<Action>& result) {
  for (const Action* action = first; action != end; ++action) {
    if (is_compute(action->kind)) {
      Stage& stage = stages[static_cast<std::size_t>(action->stage)];
      if (!std::exchange(stage.has_begun, true) && stage.is_gathered) {
        result.push_back({ActionKind::unshard, action->stage});
      }
    }
  }
}

void finish(const Action* first, const Action* end, std::vector<Stage>& stages,
            std::vector<Action>& result) {
  for (const Action* action = first; action != end; ++action) {
    if (!is_compute(action->kind)) {
      continue;
    }
    Stage& stage = stages[static_cast<std::size_t>(action->stage)];
    if (--stage.left == 0 && stage.is_reduced) {
      result.push_back({ActionKind::reduce_grad, action->stage});
    }
    if (stage.left == 0 && stage.is_freed) {
      result.push_back({ActionKind::reshard, action->stage});
    }
  }
}

}  // namespace

void copy_stage_actions(const Pipeline& from, Pipeline& to) {
  std::vector<Stage> stages = stages_of(from, to);
  for (std::vector<Action>& actions : to.actions) {
    std::vector<Action> result;
    for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
      const Action* const first = actions.data() + i;
      const Action* const end = actions.data() + after(actions, i);
      begin(first, end, stages, result);
      result.insert(result.end(), first, end);
      finish(first, end, stages, result);
    }
    actions = std::move(result);
  }
}

}  // namespace unisono::pipeline
