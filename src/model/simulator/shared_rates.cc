#include "model/simulator/shared_rates.h"

#include <algorithm>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::model {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

SharedRates::SharedRates(const Play& play, const PathTable& paths, const SimulationOptions& options)
    : play_(play),
      paths_(paths),
      options_(options),
      shares_(paths.bytes_per_us()),
      link_since_us_(paths.bytes_per_us().size()),
      actors_(play.rank_of_actor.size()) {
  for (std::uint32_t i = 0; i < play.items.size(); ++i) {
    for (const int actor : play.items[i].actors) {
      actors_[at(actor)].items.push_back(i);
    }
  }
  int ranks = 0;
  for (const int rank : play.rank_of_actor) {
    ranks = std::max(ranks, rank + 1);
  }
  ranks_.resize(at(ranks));
  result_.links.resize(paths.bytes_per_us().size());
  result_.item_end_us.resize(play.items.size());
  result_.shared_links = true;
}

SimulationResult SharedRates::run() && {
  for (int actor = 0; actor < static_cast<int>(actors_.size()); ++actor) {
    Moment& entry = actors_[at(actor)].entry;
    entry.time_us = entry.compute_us = play_.late_us[at(actor)];
    push(entry.time_us, Kind::begin, actor);
  }
  constexpr double kSameTime = 1e-12;
  while (!events_.empty()) {
    now_us_ = events_.top().time_us;
    const double until = now_us_ * (1 + kSameTime);
    while (!events_.empty() && events_.top().time_us <= until) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
      run_tasks();
    }
    settle_rates();
  }
  for (const Actor& actor : actors_) {
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
  for (const RankState& rank : ranks_) {
    result_.ranks.push_back({.moving_us = rank.moving_us,
                             .computing_us = rank.computing_us,
                             .waiting_us = std::max(0.0, end_.time_us - rank.active_us)});
  }
  return std::move(result_);
}

void SharedRates::push(double time_us, Kind kind, int subject, std::uint32_t version) {
  events_.push({.time_us = time_us,
                .number = next_number_++,
                .kind = kind,
                .subject = subject,
                .version = version});
}

void SharedRates::handle(const Event& event) {
  switch (event.kind) {
    case Kind::begin:
      begin_item(event.subject);
      return;
    case Kind::entry:
      enter(event.subject);
      return;
    case Kind::flow_begin:
      begin_flow(event.subject);
      return;
    case Kind::flow_end:
      if (flights_[at(event.subject)].version == event.version) {
        end_flow(event.subject);
      }
      return;
    case Kind::reduced:
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
    push(now_us_ + flight.left_bytes / flight.rate, Kind::flow_end, slot, ++flight.version);
  }
}

SharedRates::Operation& SharedRates::operation(std::uint32_t item) {
  const auto [place, added] = operations_.try_emplace(item);
  Operation& operation = place->second;
  if (added) {
    const PlayItem& played = play_.items[item];
    auto& known = orders_[played.blocks.get()];
    operation.orders = known.lock();
    if (operation.orders == nullptr) {
      operation.orders = std::make_shared<const std::vector<BlockOrder>>(orders_of(played));
      known = operation.orders;
    }
    operation.actors_left = played.actors.size();
    for (const PlayBlock& block : *played.blocks) {
      std::vector<std::uint32_t>& open = operation.open_needs.emplace_back();
      operation.copied.emplace_back();
      if (block.has_needs) {
        operation.copied.back().resize(block.messages.size());
        for (std::size_t i = 0; i < block.messages.size(); ++i) {
          open.push_back(static_cast<std::uint32_t>(block.needs_of(i).size()));
        }
      }
    }
  }
  return operation;
}

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

// `entry` is now: what the actor did before has ended.
void SharedRates::begin_item(int index) {
  Actor& actor = actors_[at(index)];
  if (actor.next == actor.items.size()) {
    end_.wait_for(actor.entry);
    return;
  }
  const PlayItem& item = item_of(actor);
  actor.place = static_cast<std::size_t>(std::find(item.actors.begin(), item.actors.end(), index) -
                                         item.actors.begin());
  if (item.blocks != nullptr) {
    actor.entry.time_us += item.launch_us;
    actor.entry.latency_us += item.launch_us;
  } else {
    const double compute_us = item.compute_us[actor.place];
    actor.entry.time_us += compute_us;
    actor.entry.compute_us += compute_us;
    move_rank(index, 1, true);
    ranks_[at(play_.rank_of_actor[at(index)])].computing_us += compute_us;
  }
  push(actor.entry.time_us, Kind::entry, index);
}

void SharedRates::end_item(int index, const Moment& moment) {
  Actor& actor = actors_[at(index)];
  const std::uint32_t item = actor.items[actor.next];
  result_.item_end_us[item] = std::max(result_.item_end_us[item], now_us_);
  ++actor.next;
  actor.inside = false;
  actor.entry = moment;
  actor.entry.time_us = now_us_;
  begin_item(index);
}

// A compute step has ended, or an operation begins.
void SharedRates::enter(int index) {
  Actor& actor = actors_[at(index)];
  const std::uint32_t item = actor.items[actor.next];
  if (play_.items[item].blocks == nullptr) {
    move_rank(index, -1, true);
    end_item(index, actor.entry);
    return;
  }
  Operation& operation = this->operation(item);
  const std::vector<PlayBlock>& blocks = *play_.items[item].blocks;
  actor.inside = true;
  actor.operation = &operation;
  actor.sends = Cursor(blocks, *operation.orders, actor.place, Cursor::Way::sends);
  actor.receives = Cursor(blocks, *operation.orders, actor.place, Cursor::Way::receives);
  actor.received_begun = 0;
  actor.last = actor.entry;
  actor.copies_left = 0;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    const auto copies = (*operation.orders)[block].copies.of(actor.place);
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

bool SharedRates::is_ready(const Actor& sender, const PlayBlock& block) {
  const std::size_t number = sender.sends.block();
  if (block.has_needs) {
    return sender.operation->open_needs[number][sender.sends.message()] == 0;
  }
  if (!block.waits) {
    return true;
  }
  const BlockOrder& order = (*sender.operation->orders)[number];
  const std::int64_t needed =
      order.received_before[sender.place] +
      sender.sends.step() * static_cast<std::int64_t>(order.receives.of(sender.place).size());
  return sender.received_begun >= needed &&
         std::all_of(sender.receiving.begin(), sender.receiving.end(),
                     [needed](std::int64_t receive) { return receive >= needed; });
}

// Starts what the actor sends next, as far as it can.
void SharedRates::try_send(int index, const Moment& trigger) {
  Actor& sender = actors_[at(index)];
  while (sender.inside && !sender.sends.at_end() && sender.sending < options_.ports) {
    const std::uint32_t item = sender.items[sender.next];
    const PlayBlock& block = (*play_.items[item].blocks)[sender.sends.block()];
    const PlayMessage& message = block.messages[sender.sends.message()];
    const Actor& receiver = actors_[at(message.to)];
    if (!receiver.inside || receiver.items[receiver.next] != item ||
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

// Starts what the actor receives next, if it is a local reduction or its sender can.
void SharedRates::try_receive(int index, const Moment& trigger) {
  Actor& receiver = actors_[at(index)];
  if (!receiver.inside || receiver.receives.at_end() ||
      static_cast<int>(receiver.receiving.size()) >= options_.ports) {
    return;
  }
  const std::uint32_t item = receiver.items[receiver.next];
  const std::size_t block = receiver.receives.block();
  const PlayMessage& message =
      (*play_.items[item].blocks)[block].messages[receiver.receives.message()];
  if (message.from != message.to) {
    try_send(message.from, trigger);
  } else if (receiver.operation->open_needs[block][receiver.receives.message()] == 0) {
    start_reduction(index, trigger);
    add_task(Task::Kind::receive, index, trigger);
  }
}

int SharedRates::new_flight() {
  if (free_flights_.empty()) {
    flights_.emplace_back();
    return static_cast<int>(flights_.size()) - 1;
  }
  const int slot = free_flights_.back();
  free_flights_.pop_back();
  const std::uint32_t version = flights_[at(slot)].version + 1;
  flights_[at(slot)] = {};
  flights_[at(slot)].version = version;
  return slot;
}

void SharedRates::start(int index, const Moment& trigger) {
  Actor& sender = actors_[at(index)];
  const int slot = new_flight();
  Flight& flight = flights_[at(slot)];
  flight.item = sender.items[sender.next];
  flight.block = sender.sends.block();
  flight.step = sender.sends.step();
  flight.message = sender.sends.message();
  flight.moment = trigger;
  flight.moment.time_us = now_us_;
  flight.start_us = now_us_;
  const PlayMessage& message = message_of(flight);
  Actor& receiver = actors_[at(message.to)];
  flight.receive_number = receiver.received_begun++;
  receiver.receiving.push_back(flight.receive_number);
  ++sender.sending;
  sender.sends.advance();
  receiver.receives.advance();
  move_rank(index, 1, false);
  move_rank(message.to, 1, false);
  double latency = message.overhead_us;
  if (options_.jitter > 0) {
    latency *= jitter_factor(options_, flight.item, static_cast<std::uint64_t>(flight.step),
                             flight.message);
  }
  latency += message.latency_us;
  flight.moment.latency_us += latency;
  flight.moment.messages += 1;
  result_.messages += 1;
  if (options_.records > 0) {
    keep(flight, trigger.record);
  }
  push(now_us_ + latency, Kind::flow_begin, slot);
}

void SharedRates::start_reduction(int index, const Moment& trigger) {
  Actor& actor = actors_[at(index)];
  const int slot = new_flight();
  Flight& flight = flights_[at(slot)];
  flight.item = actor.items[actor.next];
  flight.block = actor.receives.block();
  flight.step = actor.receives.step();
  flight.message = actor.receives.message();
  flight.moment = trigger;
  flight.start_us = now_us_;
  flight.receive_number = actor.received_begun++;
  actor.receiving.push_back(flight.receive_number);
  actor.receives.advance();
  move_rank(index, 1, false);
  push(now_us_ + message_of(flight).reduce_us, Kind::reduced, slot);
}

void SharedRates::begin_flow(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage& message = message_of(flight);
  const Path& path = paths_.path(message.path);
  flight.since_us = now_us_;
  flight.left_bytes = message.bytes;
  if (message.bytes <= 0 || path.count == 0 || options_.contention == Contention::off) {
    const double flow_us = message.bytes > 0 ? message.bytes / path.bytes_per_us : 0;
    push(now_us_ + flow_us, Kind::flow_end, slot, ++flight.version);
    return;
  }
  flight.flowing = true;
  for (const int link : paths_.links(path)) {
    if (shares_.users(link) == 0) {
      link_since_us_[at(link)] = now_us_;
    }
  }
  shares_.add(slot, paths_.links(path));
}

void SharedRates::end_flow(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage message = message_of(flight);
  if (flight.flowing) {
    shares_.remove(slot);
  }
  for (const int link : paths_.links(paths_.path(message.path))) {
    LinkUse& use = result_.links[at(link)];
    use.bytes += message.bytes;
    if (!flight.flowing) {
      use.busy_us += now_us_ - flight.since_us;
    } else if (shares_.users(link) == 0) {
      use.busy_us += now_us_ - link_since_us_[at(link)];
    }
  }
  flight.flowing = false;
  flight.moment.time_us = now_us_;
  const Moment sent = flight.moment;
  move_rank(message.from, -1, false);
  const int from = message.from;
  --actors_[at(from)].sending;
  actors_[at(from)].last.wait_for(sent);
  if (message.reduce_us > 0) {
    push(now_us_ + message.reduce_us, Kind::reduced, slot);
  } else {
    arrive(slot);
  }
  add_task(Task::Kind::send, from, sent);
  leave_if_done(from);
}

void SharedRates::arrive(int slot) {
  Flight& flight = flights_[at(slot)];
  const PlayMessage message = message_of(flight);
  flight.moment.reduce_us += message.reduce_us;
  flight.moment.time_us = now_us_;
  if (flight.record >= 0) {
    result_.records[static_cast<std::size_t>(flight.record)].end_us = now_us_;
  }
  const Moment moment = flight.moment;
  const std::uint32_t item = flight.item;
  const std::size_t block = flight.block;
  Actor& receiver = actors_[at(message.to)];
  receiver.receiving.erase(
      std::find(receiver.receiving.begin(), receiver.receiving.end(), flight.receive_number));
  receiver.last.wait_for(moment);
  move_rank(message.to, -1, false);
  free_flights_.push_back(slot);
  if ((*play_.items[item].blocks)[block].has_needs) {
    satisfy(message.to, block, flight.message, moment);
  }
  add_task(Task::Kind::send, message.to, moment);
  add_task(Task::Kind::receive, message.to, moment);
  leave_if_done(message.to);
}

// A local copy takes no time.
void SharedRates::copy(const Task& task) {
  Actor& actor = actors_[at(task.actor)];
  std::uint8_t& done = actor.operation->copied[task.block][task.message];
  if (done == 0) {
    done = 1;
    --actor.copies_left;
    satisfy(task.actor, task.block, task.message, task.trigger);
    leave_if_done(task.actor);
  }
}

// What `message` has brought to an actor may be what others wait for.
void SharedRates::satisfy(int index, std::size_t block, std::uint32_t message,
                          const Moment& moment) {
  const Actor& receiver = actors_[at(index)];
  const std::uint32_t item = receiver.items[receiver.next];
  Operation& operation = *receiver.operation;
  const std::vector<PlayMessage>& messages = (*play_.items[item].blocks)[block].messages;
  for (const std::uint32_t next : (*operation.orders)[block].needed_by.of(message)) {
    if (--operation.open_needs[block][next] > 0) {
      continue;
    }
    const PlayMessage& ready = messages[next];
    const Actor& actor = actors_[at(ready.from)];
    if (!actor.inside || actor.items[actor.next] != item) {
      continue;  // it will look when it enters
    }
    if (ready.from != ready.to) {
      add_task(Task::Kind::send, ready.from, moment);
    } else if (ready.reduce_us > 0) {
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
  Actor& actor = actors_[at(index)];
  if (!actor.inside || !actor.sends.at_end() || !actor.receives.at_end() || actor.sending > 0 ||
      !actor.receiving.empty() || actor.copies_left > 0) {
    return;
  }
  if (--actor.operation->actors_left == 0) {
    operations_.erase(actor.items[actor.next]);
  }
  actor.operation = nullptr;
  end_item(index, actor.last);
}

void SharedRates::keep(Flight& flight, std::int64_t cause) {
  if (result_.records.size() >= options_.records) {
    flight.moment.record = -1;
    return;
  }
  const PlayMessage& message = message_of(flight);
  flight.record = flight.moment.record = static_cast<std::int64_t>(result_.records.size());
  result_.records.push_back({.item = static_cast<int>(flight.item),
                             .phase = (*play_.items[flight.item].blocks)[flight.block].phase,
                             .step = flight.step,
                             .from = play_.rank_of_actor[at(message.from)],
                             .to = play_.rank_of_actor[at(message.to)],
                             .bytes = message.bytes,
                             .start_us = flight.start_us,
                             .cause = static_cast<int>(cause)});
}

// A rank begins (1) or ends (-1) something.
void SharedRates::move_rank(int actor, int change, bool computing) {
  RankState& rank = ranks_[at(play_.rank_of_actor[at(actor)])];
  const auto count = [this, change](int& number, double& since_us, double& sum_us) {
    if (change > 0 && number == 0) {
      since_us = now_us_;
    }
    number += change;
    if (change < 0 && number == 0) {
      sum_us += now_us_ - since_us;
    }
  };
  count(rank.active, rank.active_since_us, rank.active_us);
  if (!computing) {
    count(rank.moving, rank.moving_since_us, rank.moving_us);
  }
}

}  // namespace unisono::model
