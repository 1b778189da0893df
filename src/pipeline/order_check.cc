#include "pipeline/order_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace unisono::pipeline {
namespace {

constexpr std::size_t kCountedKinds = 8;  // the kinds that have a microbatch

class OrderCheck {
 public:
  explicit OrderCheck(const Pipeline& pipeline)
      : pipeline_(pipeline), around_(neighbours(pipeline)) {
    const std::size_t cells =
        pipeline.stage_rank.size() * static_cast<std::size_t>(pipeline.microbatches);
    for (std::vector<bool>& done : done_) {
      done.assign(cells, false);
    }
    left_.assign(pipeline.stage_rank.size(), 0);
    reduced_.assign(pipeline.stage_rank.size(), false);
    gathered_.assign(pipeline.stage_rank.size(), true);
    for (const Chain& chain : pipeline.chains) {
      for (const int stage : chain.stages) {
        left_[static_cast<std::size_t>(stage)] = chain.count;
      }
    }
    for (const std::vector<Action>& actions : pipeline.actions) {
      for (const Action& action : actions) {
        if (action.kind == ActionKind::unshard || action.kind == ActionKind::reshard) {
          gathered_[static_cast<std::size_t>(action.stage)] = false;  // until it is gathered again
        }
        reduces_ = reduces_ || action.kind == ActionKind::reduce_grad;
      }
    }
  }

  std::vector<Finding> run() {
    for (int rank = 0; rank < pipeline_.ranks; ++rank) {
      const auto& actions = pipeline_.actions[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < actions.size(); ++i) {
        if (actions[i].kind != ActionKind::overlap) {
          look_at(rank, static_cast<int>(i), actions[i]);
        }
      }
    }
    find_missing();
    compare_lanes();
    return std::move(findings_);
  }

 private:
  using Kind = Finding::Kind;
  using Lane = std::tuple<int, int, int>;  // from, to, and the number of the lane

  void add(Finding finding) {
    if (findings_.size() < kMostFindings) {
      findings_.push_back(std::move(finding));
    }
  }

  int rank_of(int stage) const { return pipeline_.stage_rank[static_cast<std::size_t>(stage)]; }

  std::vector<bool>::reference done(ActionKind kind, int stage, int microbatch) {
    return done_[static_cast<std::size_t>(
        kind)][static_cast<std::size_t>(stage) * static_cast<std::size_t>(pipeline_.microbatches) +
               static_cast<std::size_t>(microbatch)];
  }

  bool is_in_chain(const Action& action) const {
    const auto chain =
        static_cast<std::size_t>(around_.chain[static_cast<std::size_t>(action.stage)]);
    const Chain& in = pipeline_.chains[chain];
    return action.microbatch >= in.first && action.microbatch < in.first + in.count;
  }

  void require(int rank, int index, const Action& action, Action needed) {
    if (!done(needed.kind, needed.stage, needed.microbatch)) {
      add({.kind = Kind::too_early,
           .rank = rank,
           .index = index,
           .action = action,
           .other = needed});
    }
  }

  // Requires B, or I if this pipeline splits the microbatch's B.
  void require_gradient(int rank, int index, const Action& action, int stage) {
    if (!done(ActionKind::backward, stage, action.microbatch)) {
      require(rank, index, action, {ActionKind::backward_input, stage, action.microbatch});
    }
  }

  // Requires the output of `stage`: computed here, or received.
  void require_input(int rank, int index, const Action& action, int stage, ActionKind receive) {
    if (stage < 0) {
      return;
    }
    if (rank_of(stage) != rank) {
      require(rank, index, action, {receive, action.stage, action.microbatch});
    } else if (receive == ActionKind::receive_forward) {
      require(rank, index, action, {ActionKind::forward, stage, action.microbatch});
    } else {
      require_gradient(rank, index, action, stage);
    }
  }

  void look_at(int rank, int index, const Action& action) {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (rank_of(action.stage) != rank) {
      add({.kind = Kind::misplaced,
           .rank = rank,
           .index = index,
           .action = action,
           .other_rank = rank_of(action.stage)});
      return;
    }
    if (!has_microbatch(action.kind)) {
      look_at_stage(rank, index, action);
      return;
    }
    if (!is_in_chain(action) || done(action.kind, action.stage, action.microbatch) ||
        is_second_gradient(action)) {
      add({.kind = Kind::twice, .rank = rank, .index = index, .action = action});
      return;
    }
    switch (action.kind) {
      case ActionKind::forward:
        require_input(rank, index, action, around_.before[stage], ActionKind::receive_forward);
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
        require(rank, index, action, {ActionKind::forward, action.stage, action.microbatch});
        require_input(rank, index, action, around_.next[stage], ActionKind::receive_backward);
        break;
      case ActionKind::backward_weight:
        require(rank, index, action, {ActionKind::backward_input, action.stage, action.microbatch});
        break;
      case ActionKind::send_forward:
        require(rank, index, action, {ActionKind::forward, action.stage, action.microbatch});
        break;
      case ActionKind::send_backward:
        require_gradient(rank, index, action, action.stage);
        break;
      default:
        break;
    }
    done(action.kind, action.stage, action.microbatch) = true;
    note(rank, index, action);
  }

  bool is_second_gradient(const Action& action) {
    const auto has = [&](ActionKind kind) { return done(kind, action.stage, action.microbatch); };
    if (action.kind == ActionKind::backward) {
      return has(ActionKind::backward_input) || has(ActionKind::backward_weight);
    }
    return (action.kind == ActionKind::backward_input ||
            action.kind == ActionKind::backward_weight) &&
           has(ActionKind::backward);
  }

  void note(int rank, int index, const Action& action) {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (is_compute(action.kind)) {
      require_parameters(rank, index, action);
      const bool is_last =
          action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
      left_[stage] -= is_last ? 1 : 0;
      return;
    }
    const bool to_next =
        action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;
    const int partner = (to_next ? around_.next : around_.before)[stage];
    if (partner < 0 || rank_of(partner) == rank) {
      add({.kind = Kind::unpaired, .rank = rank, .index = index, .action = action});
      return;
    }
    const int lane = pipeline_.lanes == 2 && !is_forward_lane(action.kind) ? 1 : 0;
    if (is_send(action.kind)) {
      sent_[{rank, rank_of(partner), lane}].push_back(action);
    } else {
      received_[{rank_of(partner), rank, lane}].push_back(action);
    }
  }

  void require_parameters(int rank, int index, const Action& action) {
    if (!gathered_[static_cast<std::size_t>(action.stage)]) {
      add({.kind = Kind::too_early,
           .rank = rank,
           .index = index,
           .action = action,
           .other = {ActionKind::unshard, action.stage}});
    }
  }

  void look_at_stage(int rank, int index, const Action& action) {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (action.kind == ActionKind::reshard) {
      require_parameters(rank, index, action);
      gathered_[stage] = false;
      return;
    }
    const bool is_reduction = action.kind == ActionKind::reduce_grad;
    if (is_reduction ? reduced_[stage] : gathered_[stage]) {
      add({.kind = Kind::twice, .rank = rank, .index = index, .action = action});
    } else if (is_reduction && left_[stage] > 0) {
      add({.kind = Kind::too_early,
           .rank = rank,
           .index = index,
           .action = action,
           .other = {ActionKind::backward_weight, action.stage}});
    }
    (is_reduction ? reduced_ : gathered_)[stage] = true;
  }

  void find_missing() {
    for (const Chain& chain : pipeline_.chains) {
      for (const int stage : chain.stages) {
        for (int i = chain.first; i < chain.first + chain.count; ++i) {
          find_missing(stage, i);
        }
        // If the pipeline reduces gradients, other ranks have copies of the model, so every stage
        // must be reduced.
        if (reduces_ && !reduced_[static_cast<std::size_t>(stage)]) {
          add({.kind = Kind::missing,
               .rank = rank_of(stage),
               .action = {ActionKind::reduce_grad, stage}});
        }
      }
    }
  }

  void find_missing(int stage, int microbatch) {
    const auto need = [&](ActionKind kind) {
      if (!done(kind, stage, microbatch)) {
        add({.kind = Kind::missing, .rank = rank_of(stage), .action = {kind, stage, microbatch}});
      }
    };
    need(ActionKind::forward);
    if (done(ActionKind::backward_input, stage, microbatch)) {
      need(ActionKind::backward_weight);
    } else {
      need(ActionKind::backward);
    }
  }

  // Returns the receive that matches a send.
  Action arriving(const Action& sent) const {
    const auto stage = static_cast<std::size_t>(sent.stage);
    return sent.kind == ActionKind::send_forward
               ? Action{ActionKind::receive_forward, around_.next[stage], sent.microbatch}
               : Action{ActionKind::receive_backward, around_.before[stage], sent.microbatch};
  }

  void compare_lanes() {
    for (const auto& [lane, receives] : received_) {
      sent_[lane];  // creates the entry, so that a lane with only receives is compared too
    }
    for (const auto& [lane, sends] : sent_) {
      const std::vector<Action>& receives = received_[lane];
      const auto [from, to, which] = lane;
      for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i >= receives.size()) {
          add({.kind = Kind::unpaired, .rank = from, .action = sends[i], .other_rank = to});
          break;
        }
        if (i >= sends.size()) {
          add({.kind = Kind::unpaired, .rank = to, .action = receives[i], .other_rank = from});
          break;
        }
        if (arriving(sends[i]) != receives[i]) {
          add({.kind = Kind::lane_order,
               .rank = from,
               .action = sends[i],
               .other_rank = to,
               .other = receives[i]});
          break;
        }
      }
    }
  }

  const Pipeline& pipeline_;
  Neighbours around_;
  std::array<std::vector<bool>, kCountedKinds> done_;
  std::vector<int> left_;       // by stage: remaining W
  std::vector<bool> reduced_;   // by stage
  std::vector<bool> gathered_;  // by stage
  bool reduces_ = false;        // for any stage
  std::map<Lane, std::vector<Action>> sent_;
  std::map<Lane, std::vector<Action>> received_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_order(const Pipeline& pipeline) {
  return OrderCheck(pipeline).run();
}

}  // namespace unisono::pipeline
