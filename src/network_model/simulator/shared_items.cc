// The part of the engine that handles operations: which messages may start, and when a rank
// continues with its next item.
#include "network_model/simulator/shared_rates.h"

#include <algorithm>
#include <utility>

namespace unisono::network_model {

void SharedRates::run_tasks() {
  while (!tasks_.empty()) {
    const Task task = tasks_.front();
    tasks_.pop_front();
    switch (task.kind) {
      case Task::Kind::send:
        try_send(task.actor, task.trigger);
        break;
      case Task::Kind::receive:
        try_receive(task.actor, task.trigger);
        break;
      case Task::Kind::copy:
        copy(task);
        break;
    }
  }
}

// REQUIRES: `entry` is now, because the actor's previous work has ended.
void SharedRates::begin_item(int index) {
  ActorState& actor = actors_[at(index)];
  if (actor.next == actor.items.size()) {
    end_.wait_for(actor.entry);
    return;
  }
  actor.item = actor.items[actor.next].item;
  if (awaited_.holds_up(index, actor.item, actor.entry)) {
    return;
  }
  actor.entry.time_us = std::max(actor.entry.time_us, now_us_);
  const PlayItem& item = item_of(actor);
  actor.place = actor.items[actor.next].place;
  if (item.is_operation()) {
    actor.entry.time_us += item.launch_us;
    actor.entry.latency_us += item.launch_us;
  } else {
    const double compute_us = item.compute_us[actor.place];
    actor.entry.time_us += compute_us;
    actor.entry.compute_us += compute_us;
    move_rank(index, 1, true);
    const int rank = play_.rank_of_actor[at(index)];
    times_.add_computing(rank, compute_us);
    if (result_.computes.size() < options_.records) {
      result_.computes.push_back({.item = static_cast<int>(actor.item),
                                  .rank = rank,
                                  .start_us = actor.entry.time_us - compute_us,
                                  .end_us = actor.entry.time_us});
    }
  }
  events_.push(actor.entry.time_us, EventQueue::Kind::entry, index);
}

void SharedRates::end_item(int index, const Moment& moment) {
  ActorState& actor = actors_[at(index)];
  const std::uint32_t item = actor.item;
  result_.item_end_us[item] = std::max(result_.item_end_us[item], now_us_);
  ++actor.next;
  actor.inside = false;
  actor.entry = moment;
  actor.entry.time_us = now_us_;
  for (const int waiting : awaited_.end(index, item, actor.entry)) {
    begin_item(waiting);
  }
  begin_item(index);
}

// Ends a compute step, or begins an operation.
void SharedRates::enter(int index) {
  ActorState& actor = actors_[at(index)];
  const std::uint32_t item = actor.item;
  if (!play_.items[item].is_operation()) {
    move_rank(index, -1, true);
    end_item(index, actor.entry);
    return;
  }
  OpenOperation& operation = operations_.enter(item);
  actor.inside = true;
  actor.operation = &operation;
  actor.sends = Cursor(operation.blocks, actor.place, Cursor::Way::sends);
  actor.receives = Cursor(operation.blocks, actor.place, Cursor::Way::receives);
  actor.received_begun = 0;
  actor.last = actor.entry;
  actor.copies_left = 0;
  for (std::size_t block = 0; block < operation.copied.size(); ++block) {
    const auto copies = operation.blocks.at(block).order->copies.of(actor.place);
    actor.copies_left += static_cast<std::int64_t>(copies.size());
    for (const std::uint32_t message : copies) {
      if (operation.open_needs[block][message] == 0) {
        tasks_.push_back({.kind = Task::Kind::copy,
                          .actor = index,
                          .block = block,
                          .message = message,
                          .trigger = actor.entry});
      }
    }
  }
  add_task(Task::Kind::send, index, actor.entry);
  add_task(Task::Kind::receive, index, actor.entry);
  leave_if_done(index);
}

bool SharedRates::is_ready(const ActorState& sender, const PlayBlock& block) {
  const std::size_t number = sender.sends.block();
  if (block.has_needs) {
    return sender.operation->open_needs[number][sender.sends.message()] == 0;
  }
  if (!block.waits) {
    return true;
  }
  const BlockOrder& order = *sender.sends.open().order;
  const std::int64_t needed =
      order.received_before[sender.place] +
      sender.sends.step() * static_cast<std::int64_t>(order.receives.of(sender.place).size());
  return sender.received_begun >= needed &&
         std::all_of(sender.receiving.begin(), sender.receiving.end(),
                     [needed](std::int64_t receive) { return receive >= needed; });
}

// Starts as many of the actor's next sends as possible.
void SharedRates::try_send(int index, const Moment& trigger) {
  ActorState& sender = actors_[at(index)];
  while (sender.inside && !sender.sends.at_end() && sender.sending < options_.ports) {
    const std::uint32_t item = sender.item;
    const PlayBlock& block = *sender.sends.open().block;
    const PlayMessage& message = block.messages[sender.sends.message()];
    const ActorState& receiver = actors_[at(message.to)];
    if (!receiver.inside || receiver.item != item ||
        static_cast<int>(receiver.receiving.size()) >= options_.ports ||
        !receiver.receives.is_at(sender.sends.block(), sender.sends.step(),
                                 sender.sends.message()) ||
        !is_ready(sender, block)) {
      return;
    }
    start(index, trigger);
    add_task(Task::Kind::receive, message.to, trigger);
  }
}

// Starts the actor's next receive if it is a local reduction or its sender is ready.
void SharedRates::try_receive(int index, const Moment& trigger) {
  ActorState& receiver = actors_[at(index)];
  if (!receiver.inside || receiver.receives.at_end() ||
      static_cast<int>(receiver.receiving.size()) >= options_.ports) {
    return;
  }
  const std::size_t block = receiver.receives.block();
  const PlayMessage& message =
      receiver.receives.open().block->messages[receiver.receives.message()];
  if (!message.is_local()) {
    try_send(message.from, trigger);
  } else if (receiver.operation->open_needs[block][receiver.receives.message()] == 0) {
    start_reduction(index, trigger);
    add_task(Task::Kind::receive, index, trigger);
  }
}

// A local copy takes no time.
void SharedRates::copy(const Task& task) {
  ActorState& actor = actors_[at(task.actor)];
  std::uint8_t& done = actor.operation->copied[task.block][task.message];
  if (done == 0) {
    done = 1;
    --actor.copies_left;
    satisfy(task.actor, task.block, task.message, task.trigger);
    leave_if_done(task.actor);
  }
}

// Notifies the messages that wait for the data that `message` has brought to an actor.
void SharedRates::satisfy(int index, std::size_t block, std::uint32_t message,
                          const Moment& moment) {
  const ActorState& receiver = actors_[at(index)];
  const std::uint32_t item = receiver.item;
  OpenOperation& operation = *receiver.operation;
  const OpenBlock& open = operation.blocks.at(block);
  const PlayBlock& played = *open.block;
  for (const std::uint32_t next : open.order->needed_by.of(message)) {
    if (--operation.open_needs[block][next] > 0) {
      continue;
    }
    const PlayMessage& ready = played.messages[next];
    const ActorState& actor = actors_[at(ready.from)];
    if (!actor.inside || actor.item != item) {
      continue;  // the actor checks when it enters
    }
    if (!ready.is_local()) {
      add_task(Task::Kind::send, ready.from, moment);
    } else if (played.cost_of(ready).reduce_us > 0) {
      add_task(Task::Kind::receive, ready.to, moment);
    } else {
      tasks_.push_back({.kind = Task::Kind::copy,
                        .actor = ready.from,
                        .block = block,
                        .message = next,
                        .trigger = moment});
    }
  }
}

void SharedRates::leave_if_done(int index) {
  ActorState& actor = actors_[at(index)];
  if (!actor.inside || !actor.sends.at_end() || !actor.receives.at_end() || actor.sending > 0 ||
      !actor.receiving.empty() || actor.copies_left > 0) {
    return;
  }
  operations_.leave(actor.item);
  actor.operation = nullptr;
  end_item(index, actor.last);
}

}  // namespace unisono::network_model
