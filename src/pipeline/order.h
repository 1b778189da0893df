// Writes the actions of one rank: the microbatches of each stage in order.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "pipeline/catalog.h"

namespace unisono::pipeline {

// Puts stage s on rank s mod p, in one chain: the layout of all schedules except the V.
inline Pipeline looped(PipelineSize shape) {
  Pipeline pipeline{.ranks = shape.ranks, .microbatches = shape.microbatches};
  Chain chain{.stages = {}, .first = 0, .count = shape.microbatches};
  for (int stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
    pipeline.stage_rank.push_back(stage % shape.ranks);
    chain.stages.push_back(stage);
  }
  pipeline.chains = {std::move(chain)};
  pipeline.actions.resize(static_cast<std::size_t>(shape.ranks));
  return pipeline;
}

// Puts stages 0 to p-1 on ranks 0 to p-1, and stages p to 2p-1 on ranks p-1 to 0.
inline Pipeline v_shaped(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    pipeline.stage_rank[static_cast<std::size_t>(2 * shape.ranks - 1 - rank)] = rank;
  }
  return pipeline;
}

// Appends to a rank's actions. Each kind counts its own microbatches per stage.
class ActionList {
 public:
  explicit ActionList(std::vector<Action>& actions) : actions_(actions) {}

  // Starts the microbatches of `stage` at `first` instead of 0.
  void start(int stage, int first) {
    for (const ActionKind kind :
         {ActionKind::forward, ActionKind::backward_input, ActionKind::backward_weight}) {
      next_[{kind, stage}] = first;
    }
  }
  void forward(int stage) { add(ActionKind::forward, stage); }
  void input(int stage) {
    pending_.push_back(stage);
    add(ActionKind::backward_input, stage);
  }
  void weight(int stage) { add(ActionKind::backward_weight, stage); }
  void backward(int stage) {
    ++next_[{ActionKind::backward_weight, stage}];
    actions_.push_back({ActionKind::backward, stage, next_[{ActionKind::backward_input, stage}]++});
  }
  // Appends B, or I whose W follows later.
  void backward(int stage, bool is_split) { is_split ? input(stage) : backward(stage); }
  // Appends W for the first I without one.
  void weight() {
    if (done_ < pending_.size()) {
      weight(pending_[done_++]);
    }
  }
  void overlapped(int forward_stage, int backward_stage) {
    actions_.push_back({.kind = ActionKind::overlap, .parts = 2});
    forward(forward_stage);
    backward(backward_stage);
  }

 private:
  void add(ActionKind kind, int stage) {
    actions_.push_back({kind, stage, next_[{kind, stage}]++});
  }

  std::vector<Action>& actions_;
  std::map<std::pair<ActionKind, int>, int> next_;
  std::vector<int> pending_;  // stages of I without W
  std::size_t done_ = 0;
};

}  // namespace unisono::pipeline
