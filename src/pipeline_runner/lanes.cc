#include "pipeline_runner/lanes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pipeline_runner/rethrow.h"
#include "unisono/error.hpp"

namespace unisono::parallel::detail {

using pipeline::Action;
using pipeline::ActionKind;

namespace {

// Returns the other stage of a send or receive.
int other_stage(const pipeline::Neighbours& around, const Action& action) {
  const bool is_next =
      action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;
  return (is_next ? around.next : around.before)[static_cast<std::size_t>(action.stage)];
}

// Returns the peer's counterpart of a send or receive.
ActionKind mirrored(ActionKind kind) {
  switch (kind) {
    case ActionKind::send_forward:
      return ActionKind::receive_forward;
    case ActionKind::receive_forward:
      return ActionKind::send_forward;
    case ActionKind::send_backward:
      return ActionKind::receive_backward;
    case ActionKind::receive_backward:
      return ActionKind::send_backward;
    default:
      throw Error(ErrorCode::internal, "a computation was mistaken for a message");
  }
}

Action answer(const pipeline::Neighbours& around, const Action& action) {
  return {mirrored(action.kind), other_stage(around, action), action.microbatch};
}

std::string numbered(std::size_t action) {
  return " (action " + std::to_string(action + 1) + ")";
}

}  // namespace

Lanes::Lanes(Communicator& comm, const pipeline::Pipeline& pipeline, BufferPool& pool,
             Setting setting)
    : pipeline_(pipeline),
      pool_(pool),
      setting_(std::move(setting)),
      rank_(comm.rank()),
      around_(neighbours(pipeline)) {
  forward_group_ = comm.split(0, comm.rank());
  forward_ = &*forward_group_;
  backward_ = forward_;
  if (pipeline.lanes == 2) {
    backward_group_ = comm.split(0, comm.rank());
    backward_ = &*backward_group_;
  }
  list_messages();
  find_partners();
}

void Lanes::list_messages() {
  for (std::size_t i = 0; i < own().size(); ++i) {
    const Action& action = own()[i];
    if (!is_send(action.kind) && !is_receive(action.kind)) {
      continue;
    }
    const int other = other_stage(around_, action);
    place_[i] = messages_.size();
    messages_.push_back({.action = i,
                         .peer = pipeline_.stage_rank[static_cast<std::size_t>(other)],
                         .is_forward = is_forward_lane(action.kind),
                         .bytes = setting_.bytes(action)});
    if (is_receive(action.kind)) {
      lanes_[key_of(messages_.back())].receives.push_back(messages_.size() - 1);
      receives_[{action.kind, action.stage, action.microbatch}] = i;
    }
  }
}

void Lanes::find_partners() {
  std::map<std::tuple<ActionKind, int, int>, std::size_t> theirs;
  std::vector<bool> is_peer(static_cast<std::size_t>(pipeline_.ranks), false);
  for (const Message& message : messages_) {
    is_peer[static_cast<std::size_t>(message.peer)] = true;
  }
  for (std::size_t peer = 0; peer < is_peer.size(); ++peer) {
    for (std::size_t i = 0; is_peer[peer] && i < pipeline_.actions[peer].size(); ++i) {
      const Action& action = pipeline_.actions[peer][i];
      theirs[{action.kind, action.stage, action.microbatch}] = i;
    }
  }
  for (Message& message : messages_) {
    const Action wanted = answer(around_, own()[message.action]);
    message.partner = theirs.at({wanted.kind, wanted.stage, wanted.microbatch});
  }
}

std::string Lanes::owes(const Message& message) const {
  const Action& partner =
      pipeline_.actions[static_cast<std::size_t>(message.peer)][message.partner];
  return "rank " + std::to_string(message.peer) + " owes " + to_string(partner) +
         numbered(message.partner);
}

// Runs `body`, which begins or ends this message, and returns its result.
template <typename Body>
auto Lanes::saying_whose(const Message& message, const Body& body) const {
  const auto what = [&] {
    const Action& action = own()[message.action];
    return (is_send(action.kind) ? "the end of " : "") + to_string(action) +
           numbered(message.action) + ", for which " + owes(message);
  };
  return saying_what_it_waits_for(rank_, what, body);
}

void Lanes::begin_step() {
  for (auto& [key, lane] : lanes_) {
    lane.posted = 0;
    lane.reached = 0;
    post(lane);
  }
}

// Groups preserve the message order, so messages posted ahead match the next receives.
void Lanes::post(Lane& lane) {
  const std::size_t most =
      std::min(lane.receives.size(), lane.reached + static_cast<std::size_t>(setting_.capacity));
  for (; lane.posted < most; ++lane.posted) {
    Message& message = messages_[lane.receives[lane.posted]];
    message.buffer = pool_.take(message.bytes);
    // No time limit here: it starts when the rank waits.
    saying_whose(message, [&] {
      message.request = unisono::detail::ExactReceives::recv_async(
          group_of(message.is_forward), message.buffer.span().data(), message.bytes, message.peer,
          0, 0);
    });
  }
}

void Lanes::send(std::size_t action, StageBuffer buffer) {
  sweep();
  Message& message = message_of(action);
  message.buffer = std::move(buffer);
  saying_whose(message, [&] {
    message.request =
        group_of(message.is_forward)
            .send_async(message.buffer.span().data(), message.bytes, message.peer, 0, 0);
  });
  sends_.push_back(place_.at(action));
}

// Waits until the first of the sends has ended, within the time limit.
void Lanes::end_first_send() {
  Message& message = messages_[sends_.front()];
  saying_whose(message, [&] { message.request->wait(setting_.timeout_ms); });
  message.request.reset();
  pool_.give_back(std::move(message.buffer));
  setting_.ended(message.action);
  sends_.pop_front();
}

void Lanes::sweep() {
  const auto has_ended = [this](Message& message) {
    return saying_whose(message, [&] { return message.request->test(); });
  };
  while (!sends_.empty() && has_ended(messages_[sends_.front()])) {
    end_first_send();
  }
}

void Lanes::reach(std::size_t action) {
  Lane& lane = lanes_.at(key_of(message_of(action)));
  ++lane.reached;
  post(lane);
}

StageBuffer Lanes::take(const Action& receive, std::size_t needed_by) {
  Message& message = message_of(receives_.at({receive.kind, receive.stage, receive.microbatch}));
  const auto what = [&] {
    return to_string(receive) + ", which " + to_string(own()[needed_by]) + numbered(needed_by) +
           " needs and " + owes(message);
  };
  saying_what_it_waits_for(rank_, what, [&] { message.request->wait(setting_.timeout_ms); });
  message.request.reset();
  setting_.ended(message.action);
  return std::move(message.buffer);
}

void Lanes::finish_step() {
  while (!sends_.empty()) {
    end_first_send();
  }
}

}  // namespace unisono::parallel::detail
