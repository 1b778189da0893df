#include "pipeline/transfers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace unisono::pipeline {
namespace {

struct Message {
  ActionKind kind;  // of its receive
  int stage;
  int microbatch;
};

class Placing {
 public:
  explicit Placing(Pipeline& pipeline) : pipeline_(pipeline), around_(neighbours(pipeline)) {}

  void run() {
    for (int rank = 0; rank < pipeline_.ranks; ++rank) {
      list_sends(rank);
    }
    std::vector<std::vector<Action>> placed(pipeline_.actions.size());
    for (int rank = 0; rank < pipeline_.ranks; ++rank) {
      placed[static_cast<std::size_t>(rank)] = place(rank);
    }
    pipeline_.actions = std::move(placed);
  }

 private:
  using Pair = std::pair<int, int>;
  struct Lane {
    std::vector<Message> messages;
    std::size_t received = 0;
  };

  int rank_of(int stage) const {
    return stage < 0 ? -1 : pipeline_.stage_rank[static_cast<std::size_t>(stage)];
  }

  static bool is_backward(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::backward_input;
  }

  // The stage that needs the result of the action and is elsewhere; -1: none.
  int target_of(const Action& action, int rank) const {
    int stage = -1;
    if (action.kind == ActionKind::forward) {
      stage = around_.next[static_cast<std::size_t>(action.stage)];
    } else if (is_backward(action.kind)) {
      stage = around_.before[static_cast<std::size_t>(action.stage)];
    }
    return rank_of(stage) == rank ? -1 : stage;
  }

  int source_of(const Action& action, int rank) const {
    int stage = -1;
    if (action.kind == ActionKind::forward) {
      stage = around_.before[static_cast<std::size_t>(action.stage)];
    } else if (is_backward(action.kind)) {
      stage = around_.next[static_cast<std::size_t>(action.stage)];
    }
    return rank_of(stage) == rank ? -1 : stage;
  }

  void list_sends(int rank) {
    for (const Action& action : pipeline_.actions[static_cast<std::size_t>(rank)]) {
      if (action.kind == ActionKind::overlap) {
        continue;
      }
      const int stage = target_of(action, rank);
      if (stage >= 0) {
        const ActionKind kind = action.kind == ActionKind::forward ? ActionKind::receive_forward
                                                                   : ActionKind::receive_backward;
        lanes_[{rank, rank_of(stage)}].messages.push_back({kind, stage, action.microbatch});
      }
    }
  }

  void receive_for(const Action& action, int rank, std::vector<Action>& result) {
    const int stage = source_of(action, rank);
    if (stage < 0) {
      return;
    }
    const ActionKind kind = action.kind == ActionKind::forward ? ActionKind::receive_forward
                                                               : ActionKind::receive_backward;
    Lane& lane = lanes_[{rank_of(stage), rank}];
    const auto rest = lane.messages.begin() + static_cast<std::ptrdiff_t>(lane.received);
    const auto found = std::find_if(rest, lane.messages.end(), [&](const Message& message) {
      return message.kind == kind && message.stage == action.stage &&
             message.microbatch == action.microbatch;
    });
    if (found == lane.messages.end()) {
      return;  // received already, or nobody computes it: verify() tells
    }
    for (auto message = rest; message != found + 1; ++message) {
      result.push_back({message->kind, message->stage, message->microbatch});
      ++lane.received;
    }
  }

  void send_from(const Action& action, int rank, std::vector<Action>& result) const {
    if (target_of(action, rank) >= 0) {
      result.push_back({action.kind == ActionKind::forward ? ActionKind::send_forward
                                                           : ActionKind::send_backward,
                        action.stage, action.microbatch});
    }
  }

  std::vector<Action> place(int rank) {
    const std::vector<Action>& actions = pipeline_.actions[static_cast<std::size_t>(rank)];
    std::vector<Action> result;
    result.reserve(3 * actions.size());
    for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
      const std::size_t end = after(actions, i);
      for (std::size_t k = i; k < end; ++k) {
        if (actions[k].kind != ActionKind::overlap) {
          receive_for(actions[k], rank, result);
        }
      }
      result.insert(result.end(), actions.begin() + static_cast<std::ptrdiff_t>(i),
                    actions.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t k = i; k < end; ++k) {
        if (actions[k].kind != ActionKind::overlap) {
          send_from(actions[k], rank, result);
        }
      }
    }
    return result;
  }

  Pipeline& pipeline_;
  Neighbours around_;
  std::map<Pair, Lane> lanes_;
};

}  // namespace

bool has_transfers(const Pipeline& pipeline) {
  for (const std::vector<Action>& actions : pipeline.actions) {
    if (std::any_of(actions.begin(), actions.end(), [](const Action& action) {
          return is_send(action.kind) || is_receive(action.kind);
        })) {
      return true;
    }
  }
  return false;
}

void add_transfers(Pipeline& pipeline) {
  Placing(pipeline).run();
}

}  // namespace unisono::pipeline
