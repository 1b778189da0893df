// The messages of one rank of a pipeline within one step: receives posted ahead, and pending sends.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline_runner/buffers.h"
#include "unisono/communicator.hpp"

namespace unisono::parallel::detail {

class Lanes {
 public:
  struct Setting {
    int capacity = 1;
    int timeout_ms = -1;
    // Returns the message length of a send or receive.
    std::function<std::size_t(const pipeline::Action&)> bytes;
    // Called when the message of an action has ended.
    std::function<void(std::size_t)> ended;
  };
  // Creates the groups. Collective.
  Lanes(Communicator& comm, const pipeline::Pipeline& pipeline, BufferPool& pool, Setting setting);

  // Posts the first receives of a step.
  void begin_step();
  void send(std::size_t action, StageBuffer buffer);
  // Reports that the rank has reached this receive, so one more may be posted.
  void reach(std::size_t action);
  // Returns the message of this receive for the action at `needed_by`. Errors: those of run_step().
  StageBuffer take(const pipeline::Action& receive, std::size_t needed_by);
  // Waits until all sends have been received.
  void finish_step();

 private:
  struct Message {
    std::size_t action = 0;  // index among the actions of this rank
    int peer = 0;
    bool is_forward = true;
    std::size_t bytes = 0;
    std::size_t partner = 0;  // index among the actions of the peer
    StageBuffer buffer = {};
    std::optional<Request> request = {};
  };
  struct Lane {
    std::vector<std::size_t> receives = {};  // indices in messages_, in order
    std::size_t posted = 0;
    std::size_t reached = 0;
  };
  using Key = std::pair<int, bool>;  // peer, and forward or backward

  void list_messages();
  void find_partners();
  void post(Lane& lane);
  void end_first_send();
  void sweep();
  Message& message_of(std::size_t action) { return messages_[place_.at(action)]; }
  Communicator& group_of(bool is_forward) { return is_forward ? *forward_ : *backward_; }
  Key key_of(const Message& message) const {
    return {message.peer, message.is_forward || pipeline_.lanes == 1};
  }
  const std::vector<pipeline::Action>& own() const {
    return pipeline_.actions[static_cast<std::size_t>(rank_)];
  }
  std::string owes(const Message& message) const;
  template <typename Body>
  auto saying_whose(const Message& message, const Body& body) const;

  const pipeline::Pipeline& pipeline_;
  BufferPool& pool_;
  Setting setting_;
  int rank_;
  pipeline::Neighbours around_;
  std::optional<Communicator> forward_group_;
  std::optional<Communicator> backward_group_;
  Communicator* forward_ = nullptr;
  Communicator* backward_ = nullptr;
  std::vector<Message> messages_;
  std::map<std::size_t, std::size_t> place_;  // by action: index in messages_
  std::map<Key, Lane> lanes_;
  // Indices of the actions, by kind, stage and microbatch.
  std::map<std::tuple<pipeline::ActionKind, int, int>, std::size_t> receives_;
  std::deque<std::size_t> sends_;  // pending sends: indices in messages_
};

}  // namespace unisono::parallel::detail
