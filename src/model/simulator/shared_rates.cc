#include "model/simulator/shared_rates.h"

#include <algorithm>
#include <span>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::model {

namespace {

std::size_t ranks_of(const Play& play) {
  int ranks = 0;
  for (const int rank : play.rank_of_actor) {
    ranks = std::max(ranks, rank + 1);
  }
  return static_cast<std::size_t>(ranks);
}

}  // namespace

SharedRates::SharedRates(const Play& play, const PathTable& paths, const SimulationOptions& options)
    : play_(play),
      paths_(paths),
      options_(options),
      shares_(paths.bytes_per_us()),
      actors_(play.rank_of_actor.size()),
      times_(ranks_of(play)),
      gates_(play.items.size()),
      own_awaited_(play) {
  for (std::uint32_t i = 0; i < play.items.size(); ++i) {
    const std::vector<int>& actors = play.items[i].actors;
    for (std::uint32_t place = 0; place < actors.size(); ++place) {
      const int actor = actors[place];
      actors_[at(actor)].items.push_back({.item = i, .place = place});
    }
    if (play.is_awaited[i]) {
      awaited_[i].actors_left = play.items[i].actors.size();
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

// Flows whose rate has changed end at another time.
void SharedRates::settle_rates() {
  for (const int slot : shares_.settle()) {
    Flight& flight = flights_[at(slot)];
    flight.left_bytes =
        std::max(0.0, flight.left_bytes - flight.rate * (now_us_ - flight.since_us));
    flight.since_us = now_us_;
    flight.rate = shares_.rate(slot);
    events_.move_end(slot, now_us_ + flight.left_bytes / flight.rate);
  }
}

int SharedRates::new_flight() {
  if (free_flights_.empty()) {
    flights_.emplace_back();
    return static_cast<int>(flights_.size()) - 1;
  }
  const int slot = free_flights_.back();
  free_flights_.pop_back();
  flights_[at(slot)] = {};
  return slot;
}

void SharedRates::start(int index, const Moment& trigger) {
  ActorState& sender = actors_[at(index)];
  const int slot = new_flight();
  Flight& flight = flights_[at(slot)];
  flight.item = sender.items[sender.next].item;
  flight.open = &sender.sends.open();
  flight.block = sender.sends.block();
  sender.operation->blocks.hold(flight.block);
  flight.step = sender.sends.step();
  flight.message = sender.sends.message();
  flight.moment = trigger;
  flight.moment.time_us = now_us_;
  flight.start_us = now_us_;
  const PlayMessage& message = message_of(flight);
  ActorState& receiver = actors_[at(message.to)];
  flight.receive_number = receiver.received_begun++;
  receiver.receiving.push_back(flight.receive_number);
  ++sender.sending;
  sender.sends.advance();
  receiver.receives.advance();
  move_rank(index, 1, false);
  move_rank(message.to, 1, false);
  const MessageCost& cost = cost_of(flight);
  double latency = cost.overhead_us;
  if (options_.jitter > 0) {
    latency *= jitter_factor(options_, flight.item, static_cast<std::uint64_t>(flight.step),
                             block_of(flight).before + flight.message);
  }
  latency += cost.latency_us;
  flight.moment.latency_us += latency;
  flight.moment.messages += 1;
  result_.messages += 1;
  if (options_.records > 0) {
    keep(flight, trigger.record);
  }
  events_.push(now_us_ + latency, EventQueue::Kind::flow_begin, slot);
}

void SharedRates::start_reduction(int index, const Moment& trigger) {
  ActorState& actor = actors_[at(index)];
  const int slot = new_flight();
  Flight& flight = flights_[at(slot)];
  flight.item = actor.items[actor.next].item;
  flight.open = &actor.receives.open();
  flight.block = actor.receives.block();
  actor.operation->blocks.hold(flight.block);
  flight.step = actor.receives.step();
  flight.message = actor.receives.message();
  flight.moment = trigger;
  flight.start_us = now_us_;
  flight.receive_number = actor.received_begun++;
  actor.receiving.push_back(flight.receive_number);
  actor.receives.advance();
  move_rank(index, 1, false);
  events_.push(now_us_ + cost_of(flight).reduce_us, EventQueue::Kind::reduced, slot);
}

void SharedRates::begin_flow(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage& message = message_of(flight);
  const PathList& paths = *flight.open->paths;
  const Path& path = paths.path(message.path);
  flight.since_us = now_us_;
  const double bytes = cost_of(flight).bytes;
  flight.left_bytes = bytes;
  if (bytes <= 0 || path.count == 0 || options_.contention == Contention::off) {
    const double flow_us = bytes > 0 ? bytes / path.bytes_per_us : 0;
    events_.move_end(slot, now_us_ + flow_us);
    return;
  }
  flight.flowing = true;
  shares_.begin(slot, paths.links(path), paths.shares(path), now_us_);
}

void SharedRates::end_flow(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage message = message_of(flight);
  const MessageCost& cost = cost_of(flight);
  if (flight.flowing) {
    shares_.end(slot, now_us_, cost.bytes);
  } else {
    const PathList& paths = *flight.open->paths;
    const Path& path = paths.path(message.path);
    const std::span<const double> shares = paths.shares(path);
    for (std::size_t i = 0; i < path.count; ++i) {
      shares_.pass_by(paths.links(path)[i], cost.bytes * (shares.empty() ? 1 : shares[i]),
                      now_us_ - flight.since_us);
    }
  }
  flight.flowing = false;
  flight.moment.time_us = now_us_;
  const Moment sent = flight.moment;
  move_rank(message.from, -1, false);
  const int from = message.from;
  --actors_[at(from)].sending;
  actors_[at(from)].last.wait_for(sent);
  if (cost.reduce_us > 0) {
    events_.push(now_us_ + cost.reduce_us, EventQueue::Kind::reduced, slot);
  } else {
    arrive(slot);
  }
  add_task(Task::Kind::send, from, sent);
  leave_if_done(from);
}

void SharedRates::arrive(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage message = message_of(flight);
  flight.moment.reduce_us += cost_of(flight).reduce_us;
  flight.moment.time_us = now_us_;
  if (flight.record >= 0) {
    result_.records[static_cast<std::size_t>(flight.record)].end_us = now_us_;
  }
  const Moment moment = flight.moment;
  const std::size_t block = flight.block;
  ActorState& receiver = actors_[at(message.to)];
  receiver.receiving.erase(
      std::find(receiver.receiving.begin(), receiver.receiving.end(), flight.receive_number));
  receiver.last.wait_for(moment);
  move_rank(message.to, -1, false);
  free_flights_.push_back(slot);
  if (block_of(flight).has_needs) {
    satisfy(message.to, block, flight.message, moment);
  }
  receiver.operation->blocks.leave(block);
  add_task(Task::Kind::send, message.to, moment);
  add_task(Task::Kind::receive, message.to, moment);
  leave_if_done(message.to);
}

void SharedRates::keep(Flight& flight, std::int64_t cause) {
  if (result_.records.size() >= options_.records) {
    flight.moment.record = -1;
    return;
  }
  const PlayMessage& message = message_of(flight);
  flight.record = flight.moment.record = static_cast<std::int64_t>(result_.records.size());
  result_.records.push_back({.item = static_cast<int>(flight.item),
                             .phase = block_of(flight).phase,
                             .step = flight.step,
                             .from = play_.rank_of_actor[at(message.from)],
                             .to = play_.rank_of_actor[at(message.to)],
                             .bytes = cost_of(flight).bytes,
                             .start_us = flight.start_us,
                             .cause = static_cast<int>(cause)});
}

}  // namespace unisono::model
