#include "network_model/simulator/fixed_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace unisono::network_model {
namespace {

// Returns true if tracking both ports of every rank would take most of the time.
bool has_long_phases(const Play& play) {
  constexpr std::int64_t kManyMessages = 4096;
  return std::any_of(play.items.begin(), play.items.end(), [](const PlayItem& item) {
    for (std::size_t i = 0; item.is_operation() && i < item.block_count(); ++i) {
      const BlockSource::Size size = item.block_size(i);
      if (size.repeats > 2 && size.messages > kManyMessages) {
        return true;
      }
    }
    return false;
  });
}

double transfer_us(const PathTable& paths, const PlayMessage& message, double bytes) {
  return bytes > 0 ? bytes / paths.path(message.path).bytes_per_us : 0;
}

}  // namespace

FixedRates::FixedRates(const Play& play, const PathTable& paths, const SimulationOptions& options,
                       Links links)
    : play_(play),
      paths_(paths),
      options_(options),
      ports_(at(options.ports)),
      own_ends_(play),
      use_(play.rank_count(), options.rank_times && (links == Links::watched || options.ports > 1 ||
                                                     !has_long_phases(play))) {
  if (links == Links::watched) {
    watch_.emplace(paths.bytes_per_us());
  }
  const std::size_t actors = play.rank_of_actor.size();
  now_.resize(actors);
  for (std::size_t actor = 0; actor < actors; ++actor) {
    now_[actor].time_us = now_[actor].compute_us = play.late_us[actor];
  }
  for (Side* side : {&out_, &in_}) {
    side->free.resize(actors * ports_);
    side->began.resize(actors);
  }
  received_.resize(actors);
  arrived_.resize(actors);
  result_.links.resize(paths.bytes_per_us().size());
}

std::optional<SimulationResult> FixedRates::run() && {
  for (std::size_t i = 0; i < play_.items.size() && !have_met(); ++i) {
    const PlayItem& item = play_.items[i];
    wait_for_earlier(item);
    if (!item.is_operation()) {
      compute(item, i);
    } else {
      operate(item, i);
    }
    Moment end;
    for (const int actor : item.actors) {
      end.wait_for(now_[at(actor)]);
      if (play_.is_own_awaited[i]) {
        *own_ends_.find(i, rank_of(actor)) = now_[at(actor)];
      }
    }
    result_.item_end_us.push_back(end.time_us);
    if (play_.is_awaited[i]) {
      ends_[static_cast<int>(i)] = end;
    }
  }
  if (have_met()) {
    return std::nullopt;
  }
  Moment last;
  for (const Moment& moment : now_) {
    last.wait_for(moment);
  }
  result_.total_us = last.time_us;
  result_.critical = last.critical();
  for (LinkUse& use : result_.links) {
    use.busy_us = std::min(use.busy_us, last.time_us);
  }
  for (std::int64_t record = last.record; record >= 0;
       record = result_.records[static_cast<std::size_t>(record)].cause) {
    result_.critical_records.push_back(static_cast<int>(record));
  }
  std::reverse(result_.critical_records.begin(), result_.critical_records.end());
  if (options_.rank_times) {
    result_.ranks = use_.times(last.time_us);
  }
  return std::move(result_);
}

void FixedRates::wait_for_earlier(const PlayItem& item) {
  Moment ended;
  for (const int before : item.after) {
    ended.wait_for(ends_.at(before));
  }
  for (const int actor : item.actors) {
    Moment& now = now_[at(actor)];
    now.wait_for(ended);
    for (const int before : item.after_own) {
      const Moment* end = own_ends_.find(at(before), rank_of(actor));
      if (end != nullptr) {
        now.wait_for(*end);
      }
    }
  }
}

void FixedRates::compute(const PlayItem& item, std::size_t index) {
  for (std::size_t i = 0; i < item.actors.size(); ++i) {
    Moment& now = now_[at(item.actors[i])];
    const int rank = rank_of(item.actors[i]);
    if (result_.computes.size() < options_.records) {
      result_.computes.push_back({.item = static_cast<int>(index),
                                  .rank = rank,
                                  .start_us = now.time_us,
                                  .end_us = now.time_us + item.compute_us[i]});
    }
    now.time_us += item.compute_us[i];
    now.compute_us += item.compute_us[i];
    use_.compute(rank, item.compute_us[i]);
  }
}

void FixedRates::operate(const PlayItem& item, std::size_t index) {
  for (const int actor : item.actors) {
    Moment& now = now_[at(actor)];
    now.time_us += item.launch_us;
    now.latency_us += item.launch_us;
    for (Side* side : {&out_, &in_}) {
      std::fill_n(side->free.begin() + static_cast<std::ptrdiff_t>(at(actor) * ports_), ports_,
                  now);
      side->began[at(actor)] = now.time_us;
    }
    received_[at(actor)] = now;
  }
  for (std::size_t i = 0; i < item.block_count() && !have_met(); ++i) {
    const PlayBlock& block = item.block(i);
    const Step step{.block = &block, .item = index};
    if (block.has_needs) {
      play_needs(step);
    } else {
      play_steps(step);
    }
    count_links(block);
    if (options_.progress != nullptr) {
      options_.progress->played = result_.messages;
    }
  }
  for (const int actor : item.actors) {
    Moment& now = now_[at(actor)];
    for (std::size_t port = 0; port < ports_; ++port) {
      now.wait_for(out_.free[at(actor) * ports_ + port]);
      now.wait_for(in_.free[at(actor) * ports_ + port]);
    }
    now.wait_for(received_[at(actor)]);
  }
}

void FixedRates::play_needs(const Step& step) {
  const PlayBlock& block = *step.block;
  std::vector<Moment> ends(block.messages.size());
  for (std::size_t i = 0; i < block.messages.size() && !have_met(); ++i) {
    const PlayMessage& message = block.messages[i];
    Moment ready = now_[at(message.from)];
    for (const std::uint32_t need : block.needs_of(i)) {
      ready.wait_for(ends[need]);
    }
    ends[i] = message.is_local()
                  ? reduce_locally(message.to, block.cost_of(message).reduce_us, ready)
                  : send(step, i, ready);
    received_[at(message.to)].wait_for(ends[i]);
    result_.messages += message.is_local() ? 0 : 1;
    result_.simulated += message.is_local() ? 0 : 1;
  }
  check_limit(result_.simulated, options_, false);
}

Moment FixedRates::send(const Step& step, std::size_t index, const Moment& ready) {
  const PlayMessage& message = step.block->messages[index];
  const MessageCost& cost = step.block->cost_of(message);
  Moment start = ready;
  start.wait_for(first_free(out_, message.from));
  start.wait_for(first_free(in_, message.to));
  if (ports_ > 1) {
    start.time_us =
        std::max({start.time_us, out_.began[at(message.from)], in_.began[at(message.to)]});
  }
  double overhead = cost.overhead_us;
  if (options_.jitter > 0) {
    overhead *= jitter_factor(options_, step.item, static_cast<std::uint64_t>(step.number),
                              step.block->before + index);
  }
  Moment end = start;
  const double latency = overhead + cost.latency_us;
  end.time_us += latency + transfer_us(paths_, message, cost.bytes);
  if (watch_ && cost.bytes > 0) {
    watch(message, {.begin_us = start.time_us + latency, .end_us = end.time_us});
  }
  end.latency_us += latency;
  end.messages += 1;
  const double out_us = end.time_us;
  Moment sent = end;
  end.time_us += cost.reduce_us;
  end.reduce_us += cost.reduce_us;
  if (options_.records > 0) {
    keep(step, message, start.time_us, end, start.record);
    sent.record = end.record;
  }
  take_port(out_, message.from, sent, start.time_us);
  take_port(in_, message.to, end, start.time_us);
  use_.add(rank_of(message.from), BusyTime::sending, start.time_us, out_us);
  use_.add(rank_of(message.to), BusyTime::receiving, start.time_us, end.time_us);
  return end;
}

// If a link has no room for its messages, they do not have the rates that they would have alone.
void FixedRates::watch(const PlayMessage& message, LinkWatch::Flow flow) {
  const Path& path = paths_.path(message.path);
  const std::span<const double> shares = paths_.shares(path);
  for (std::size_t i = 0; i < path.count && !have_met(); ++i) {
    flow.bytes_per_us = path.bytes_per_us * (shares.empty() ? 1 : shares[i]);
    watch_->add(paths_.links(path)[i], flow);
  }
}

// A local reduction uses the receiving port; a copy costs nothing.
Moment FixedRates::reduce_locally(int actor, double reduce_us, const Moment& ready) {
  if (reduce_us <= 0) {
    return ready;
  }
  Moment end = ready;
  end.wait_for(first_free(in_, actor));
  if (ports_ > 1) {
    end.time_us = std::max(end.time_us, in_.began[at(actor)]);
  }
  const double start_us = end.time_us;
  end.time_us += reduce_us;
  end.reduce_us += reduce_us;
  take_port(in_, actor, end, start_us);
  use_.add(rank_of(actor), BusyTime::receiving, start_us, end.time_us);
  return end;
}

void FixedRates::take_port(Side& side, int actor, const Moment& until, double began) {
  side.began[at(actor)] = began;
  const std::size_t first = at(actor) * ports_;
  side.free[first] = until;
  for (std::size_t i = first; i + 1 < first + ports_; ++i) {
    if (side.free[i].time_us > side.free[i + 1].time_us) {
      std::swap(side.free[i], side.free[i + 1]);
    }
  }
}

void FixedRates::keep(const Step& step, const PlayMessage& message, double start_us, Moment& end,
                      std::int64_t cause) {
  if (result_.records.size() >= options_.records) {
    end.record = -1;
    return;
  }
  end.record = static_cast<std::int64_t>(result_.records.size());
  result_.records.push_back({.item = static_cast<int>(step.item),
                             .phase = step.block->phase,
                             .step = step.number,
                             .from = rank_of(message.from),
                             .to = rank_of(message.to),
                             .bytes = step.block->cost_of(message).bytes,
                             .start_us = start_us,
                             .end_us = end.time_us,
                             .cause = static_cast<int>(cause)});
}

void FixedRates::count_links(const PlayBlock& block) {
  for (const PlayMessage& message : block.messages) {
    if (message.is_local()) {
      continue;
    }
    const MessageCost& cost = block.cost_of(message);
    const double transfer = transfer_us(paths_, message, cost.bytes);
    const auto repeats = static_cast<double>(block.repeats);
    const double sent_us = (cost.overhead_us + cost.latency_us + transfer) * repeats;
    use_.add_all(rank_of(message.from), BusyTime::sending, sent_us);
    use_.add_all(rank_of(message.to), BusyTime::receiving, sent_us + cost.reduce_us * repeats);
    const Path& path = paths_.path(message.path);
    const std::span<const double> shares = paths_.shares(path);
    for (std::size_t i = 0; i < path.count; ++i) {
      LinkUse& use = result_.links[at(paths_.links(path)[i])];
      use.bytes += cost.bytes * repeats * (shares.empty() ? 1 : shares[i]);
      use.busy_us += transfer * repeats;
    }
  }
}

}  // namespace unisono::network_model
