#include "pipeline/transfers.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace unisono::pipeline {
namespace {

struct Message {
  ActionKind kind;  // of the receive
  int stage;
  int microbatch;
};

class Placing {
 public:
  explicit Placing(Pipeline& pipeline) : pipeline_(pipeline), around_(neighbours(pipeline)) {
    for (std::vector<int>& places : place_) {
      places.assign(pipeline.stage_rank.size() * static_cast<std::size_t>(pipeline.microbatches),
                    -1);
    }
  }

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
    int received = 0;
  };

  int rank_of(int stage) const {
    return stage < 0 ? -1 : pipeline_.stage_rank[static_cast<std::size_t>(stage)];
  }

  static bool is_backward(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::backward_input;
  }

  // Returns the stage on another rank that needs the result of the action; -1 if there is none.
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

  // Returns the position of the message in its lane; negative if no rank sends it.
  int& place_of(const Message& message) {
    return place_[message.kind == ActionKind::receive_forward ? 0 : 1]
                 [static_cast<std::size_t>(message.stage) *
                      static_cast<std::size_t>(pipeline_.microbatches) +
                  static_cast<std::size_t>(message.microbatch)];
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
        const Message message{kind, stage, action.microbatch};
        std::vector<Message>& messages = lanes_[{rank, rank_of(stage)}].messages;
        // verify() reports an action on another rank than its stage.
        if (int& place = place_of(message); place < 0 && rank == rank_of(action.stage)) {
          place = static_cast<int>(messages.size());
        }
        messages.push_back(message);
      }
    }
  }

  void receive_for(const Action& action, int rank, std::vector<Action>& result) {
    const int stage = source_of(action, rank);
    if (stage < 0 || rank != rank_of(action.stage)) {
      return;
    }
    const ActionKind kind = action.kind == ActionKind::forward ? ActionKind::receive_forward
                                                               : ActionKind::receive_backward;
    Lane& lane = lanes_[{rank_of(stage), rank}];
    // Does nothing if the message is already received, or if no rank computes it: verify() reports
    // the latter.
    for (const int place = place_of({kind, action.stage, action.microbatch});
         lane.received <= place; ++lane.received) {
      const Message& message = lane.messages[static_cast<std::size_t>(lane.received)];
      result.push_back({message.kind, message.stage, message.microbatch});
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
  std::array<std::vector<int>, 2> place_;  // by direction: forward, backward
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
