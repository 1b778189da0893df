#include "network_model/simulator/shared_rates.h"

#include <algorithm>
#include <span>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::network_model {

SharedRates::SharedRates(const Play& play, const PathTable& paths, const SimulationOptions& options)
    : play_(play),
      paths_(paths),
      options_(options),
      shares_(paths.bytes_per_us()),
      actors_(play.rank_of_actor.size()),
      times_(play.rank_count()),
      operations_(play, paths),
      awaited_(play) {
  for (std::uint32_t i = 0; i < play.items.size(); ++i) {
    const std::vector<int>& actors = play.items[i].actors;
    for (std::uint32_t place = 0; place < actors.size(); ++place) {
      const int actor = actors[place];
      actors_[at(actor)].items.push_back({.item = i, .place = place});
    }
  }
  result_.item_end_us.resize(play.items.size());
  result_.shared_links = true;
}

SimulationResult SharedRates::run() && {
  for (int actor = 0; actor < static_cast<int>(actors_.size()); ++actor) {
    Moment& entry = actors_[at(actor)].entry;
    entry.time_us = entry.compute_us = play_.late_us[at(actor)];
    events_.push(entry.time_us, EventQueue::Kind::begin, actor);
  }
  constexpr double kSameTime = 1e-12;
  while (!events_.empty()) {
    now_us_ = events_.next_us();
    const double until = now_us_ * (1 + kSameTime);
    while (!events_.empty() && events_.next_us() <= until) {
      handle(events_.pop());
      run_tasks();
    }
    settle_rates();
    if (options_.progress != nullptr) {
      options_.progress->played = result_.messages;
    }
  }
  for (const ActorState& actor : actors_) {
    if (actor.next < actor.items.size()) {
      throw Error(ErrorCode::internal,
                  "the simulation stopped before the end\nthis is a mistake in unisono: report it");
    }
  }
  result_.total_us = end_.time_us;
  result_.critical = end_.critical();
  result_.simulated = result_.messages;
  for (std::int64_t record = end_.record; record >= 0;
       record = result_.records[static_cast<std::size_t>(record)].cause) {
    result_.critical_records.push_back(static_cast<int>(record));
  }
  std::reverse(result_.critical_records.begin(), result_.critical_records.end());
  result_.ranks = times_.uses(end_.time_us);
  for (std::size_t link = 0; link < paths_.bytes_per_us().size(); ++link) {
    result_.links.push_back(shares_.use(static_cast<int>(link)));
  }
  return std::move(result_);
}

void SharedRates::handle(const EventQueue::Event& event) {
  switch (event.kind) {
    case EventQueue::Kind::begin:
      begin_item(event.subject);
      return;
    case EventQueue::Kind::entry:
      enter(event.subject);
      return;
    case EventQueue::Kind::flow_begin:
      begin_flow(event.subject);
      return;
    case EventQueue::Kind::flow_end:
      end_flow(event.subject);
      return;
    case EventQueue::Kind::reduced:
      arrive(event.subject);
      return;
  }
}

// Moves the ends of the flows whose rate has changed.
void SharedRates::settle_rates() {
  for (const int slot : shares_.settle()) {
    ActiveTransfer& transfer = transfers_[slot];
    transfer.left_bytes =
        std::max(0.0, transfer.left_bytes - transfer.rate * (now_us_ - transfer.since_us));
    transfer.since_us = now_us_;
    transfer.rate = shares_.rate(slot);
    events_.move_end(slot, now_us_ + transfer.left_bytes / transfer.rate);
  }
}

// Starts a transfer of the message at the cursor, which belongs to the actor.
int SharedRates::new_transfer(ActorState& actor, const Cursor& cursor) {
  const int slot = transfers_.take();
  const OpenBlock& open = cursor.open();
  const PlayMessage& message = open.block->messages[cursor.message()];
  const MessageCost& cost = open.block->cost_of(message);
  ActiveTransfer& transfer = transfers_[slot];
  transfer = {.from = message.from,
              .to = message.to,
              .bytes = cost.bytes,
              .reduce_us = cost.reduce_us,
              .open = &open,
              .block = cursor.block(),
              .message = cursor.message(),
              .item = actor.item,
              .step = cursor.step(),
              .start_us = now_us_};
  if (!message.is_local()) {
    const Path& path = open.paths->path(message.path);
    transfer.links = open.paths->links(path);
    transfer.shares = open.paths->shares(path);
  }
  ActorState& receiver = actors_[at(message.to)];
  transfer.receive_number = receiver.received_begun++;
  receiver.receiving.push_back(transfer.receive_number);
  move_rank(message.to, 1, false);
  actor.operation->blocks.hold(transfer.block);
  return slot;
}

void SharedRates::start(int index, const Moment& trigger) {
  ActorState& sender = actors_[at(index)];
  const int slot = new_transfer(sender, sender.sends);
  ActiveTransfer& transfer = transfers_[slot];
  transfer.moment = trigger;
  transfer.moment.time_us = now_us_;
  const PlayBlock& block = *transfer.open->block;
  const MessageCost& cost = block.cost_of(block.messages[transfer.message]);
  ++sender.sending;
  sender.sends.advance();
  actors_[at(transfer.to)].receives.advance();
  move_rank(index, 1, false);
  double latency = cost.overhead_us;
  if (options_.jitter > 0) {
    latency *= jitter_factor(options_, transfer.item, static_cast<std::uint64_t>(transfer.step),
                             block.before + transfer.message);
  }
  latency += cost.latency_us;
  transfer.moment.latency_us += latency;
  transfer.moment.messages += 1;
  result_.messages += 1;
  if (options_.records > 0) {
    keep(transfer, trigger.record);
  }
  events_.push(now_us_ + latency, EventQueue::Kind::flow_begin, slot);
}

void SharedRates::start_reduction(int index, const Moment& trigger) {
  ActorState& actor = actors_[at(index)];
  const int slot = new_transfer(actor, actor.receives);
  ActiveTransfer& transfer = transfers_[slot];
  transfer.moment = trigger;
  actor.receives.advance();
  events_.push(now_us_ + transfer.reduce_us, EventQueue::Kind::reduced, slot);
}

void SharedRates::begin_flow(int slot) {
  ActiveTransfer& transfer = transfers_[slot];
  transfer.since_us = now_us_;
  transfer.left_bytes = transfer.bytes;
  if (transfer.bytes <= 0 || transfer.links.empty() || options_.contention == Contention::off) {
    const PlayMessage& message = transfer.open->block->messages[transfer.message];
    const double alone = transfer.open->paths->path(message.path).bytes_per_us;
    events_.move_end(slot, now_us_ + (transfer.bytes > 0 ? transfer.bytes / alone : 0));
    return;
  }
  transfer.flowing = true;
  shares_.begin(slot, transfer.links, transfer.shares, now_us_);
}

void SharedRates::end_flow(int slot) {
  ActiveTransfer& transfer = transfers_[slot];
  if (transfer.flowing) {
    shares_.end(slot, now_us_, transfer.bytes);
  } else {
    for (std::size_t i = 0; i < transfer.links.size(); ++i) {
      shares_.pass_by(transfer.links[i],
                      transfer.bytes * (transfer.shares.empty() ? 1 : transfer.shares[i]),
                      now_us_ - transfer.since_us);
    }
  }
  transfer.flowing = false;
  transfer.moment.time_us = now_us_;
  const Moment sent = transfer.moment;
  const int from = transfer.from;
  move_rank(from, -1, false);
  --actors_[at(from)].sending;
  actors_[at(from)].last.wait_for(sent);
  if (transfer.reduce_us > 0) {
    events_.push(now_us_ + transfer.reduce_us, EventQueue::Kind::reduced, slot);
  } else {
    arrive(slot);
  }
  add_task(Task::Kind::send, from, sent);
  leave_if_done(from);
}

void SharedRates::arrive(int slot) {
  ActiveTransfer& transfer = transfers_[slot];
  transfer.moment.reduce_us += transfer.reduce_us;
  transfer.moment.time_us = now_us_;
  if (transfer.record >= 0) {
    result_.records[static_cast<std::size_t>(transfer.record)].end_us = now_us_;
  }
  const Moment moment = transfer.moment;
  const int to = transfer.to;
  const std::size_t block = transfer.block;
  ActorState& receiver = actors_[at(to)];
  receiver.receiving.erase(
      std::find(receiver.receiving.begin(), receiver.receiving.end(), transfer.receive_number));
  receiver.last.wait_for(moment);
  move_rank(to, -1, false);
  transfers_.give_back(slot);
  if (transfer.open->block->has_needs) {
    satisfy(to, block, transfer.message, moment);
  }
  receiver.operation->blocks.leave(block);
  add_task(Task::Kind::send, to, moment);
  add_task(Task::Kind::receive, to, moment);
  leave_if_done(to);
}

void SharedRates::keep(ActiveTransfer& transfer, std::int64_t cause) {
  if (result_.records.size() >= options_.records) {
    transfer.moment.record = -1;
    return;
  }
  transfer.record = transfer.moment.record = static_cast<std::int64_t>(result_.records.size());
  result_.records.push_back({.item = static_cast<int>(transfer.item),
                             .phase = transfer.open->block->phase,
                             .step = transfer.step,
                             .from = play_.rank_of_actor[at(transfer.from)],
                             .to = play_.rank_of_actor[at(transfer.to)],
                             .bytes = transfer.bytes,
                             .start_us = transfer.start_us,
                             .cause = static_cast<int>(cause)});
}

}  // namespace unisono::network_model
