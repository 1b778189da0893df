// The part of the engine for unshared links that plays repeated steps, and detects when the rest of
// them need not be played.
#include <algorithm>
#include <cmath>
#include <limits>

#include "network_model/simulator/fixed_rates.h"

namespace unisono::network_model {

FixedRates::Party FixedRates::party_of(const PlayBlock& block) const {
  Party party;
  for (const PlayMessage& message : block.messages) {
    party.senders.push_back(message.from);
    party.receivers.push_back(message.to);
    for (const int actor : {message.from, message.to}) {
      party.ranks.push_back(rank_of(actor));
    }
  }
  for (std::vector<int>* list : {&party.senders, &party.receivers, &party.ranks}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return party;
}

void FixedRates::remember(const Party& party) {
  before_.out.clear();
  before_.in.clear();
  before_.busy_us.clear();
  for (const int actor : party.senders) {
    before_.out.push_back(first_free(out_, actor));
  }
  for (const int actor : party.receivers) {
    before_.in.push_back(first_free(in_, actor));
  }
  for (std::size_t i = 0; i < party.ranks.size() && use_.is_exact(); ++i) {
    before_.busy_us.push_back(use_.busy(party.ranks[i]).total_us());
  }
}

// Returns the greatest distance between the two sides of one rank.
double FixedRates::most_apart_us(const Party& party) const {
  double most = 0;
  for (const int actor : party.senders) {
    if (!std::binary_search(party.receivers.begin(), party.receivers.end(), actor)) {
      continue;
    }
    most = std::max(most, std::abs(out_.free[at(actor)].time_us - in_.free[at(actor)].time_us));
  }
  return most;
}

// Repeats the changes of the last step `periods` more times.
void FixedRates::move_on(const Party& party, double period_us, double periods) {
  const double offset = period_us * periods;
  for (std::size_t i = 0; i < party.senders.size(); ++i) {
    Moment& free = first_free(out_, party.senders[i]);
    free = free.further(before_.out[i], period_us, periods);
    out_.began[at(party.senders[i])] += offset;
  }
  for (std::size_t i = 0; i < party.receivers.size(); ++i) {
    Moment& free = first_free(in_, party.receivers[i]);
    free = free.further(before_.in[i], period_us, periods);
    in_.began[at(party.receivers[i])] += offset;
    received_[at(party.receivers[i])] = free;
  }
  for (std::size_t i = 0; i < before_.busy_us.size(); ++i) {
    BusyTime& busy = use_.busy(party.ranks[i]);
    busy.shift((busy.total_us() - before_.busy_us[i]) * periods, offset);
  }
}

// The sends of a step do not wait for data that their ranks receive in the same step.
void FixedRates::end_step(const Step& step) {
  const PlayBlock& block = *step.block;
  if (!block.ends_step) {
    return;
  }
  if (block.before > 0) {
    for (const int actor : play_.items[step.item].actors) {
      received_[at(actor)].wait_for(arrived_[at(actor)]);
    }
    return;
  }
  for (const PlayMessage& message : block.messages) {
    received_[at(message.to)].wait_for(arrived_[at(message.to)]);
  }
}

// Detects steady steps. If every message of a step ends later than in the previous step by the same
// time, all further steps behave alike and need not be played.
void FixedRates::play_steps(Step step) {
  const PlayBlock& block = *step.block;
  const auto messages = static_cast<double>(block.messages.size());
  result_.messages += messages * static_cast<double>(block.repeats);
  const bool may_skip =
      options_.extrapolate && options_.jitter <= 0 && ports_ == 1 && !watch_ && block.repeats > 2;
  const Party party = may_skip ? party_of(block) : Party{};
  before_.end_us.assign(block.messages.size(), 0);
  double steady = 0;  // number of steady steps so far
  for (; step.number < block.repeats && !have_met(); ++step.number) {
    const bool was_steady = steady > 0;
    if (may_skip && was_steady) {
      remember(party);
    }
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (std::size_t i = 0; i < block.messages.size() && !have_met(); ++i) {
      const PlayMessage& message = block.messages[i];
      const Moment end =
          send(step, i, block.waits ? received_[at(message.from)] : now_[at(message.from)]);
      arrived_[at(message.to)].wait_for(end);
      const double change = end.time_us - before_.end_us[i];
      least = std::min(least, change);
      most = std::max(most, change);
      before_.end_us[i] = end.time_us;
    }
    end_step(step);
    result_.simulated += messages;
    check_limit(result_.simulated, options_, false);
    constexpr double kRounding = 4e-15;  // relative, of sums of times
    steady = step.number > 0 && most - least <= kRounding * before_.end_us.front() ? steady + 1 : 0;
    const double period_us = (least + most) / 2;
    if (may_skip && was_steady && steady > 0 &&
        (!use_.is_exact() || (steady - 2) * period_us >= most_apart_us(party))) {
      move_on(party, period_us, static_cast<double>(block.repeats - 1 - step.number));
      break;
    }
  }
}

}  // namespace unisono::network_model
