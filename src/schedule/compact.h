// A schedule in compact form: the messages of one step, and the number of times that the step is
// repeated.
//
// A ring over 16384 ranks has 5e8 moves, but all its steps have the same messages between the same
// ranks. The time does not depend on which chunks the messages contain. The compact form is enough
// to simulate an algorithm if every step waits for the step before it, or if no step waits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace unisono {

// All moves from one rank to another in one step. Local moves are left out.
struct CompactMessage {
  int from = 0;
  int to = 0;
  std::int64_t chunks = 0;
  std::int64_t reduced = 0;  // of these chunks

  friend auto operator<=>(const CompactMessage&, const CompactMessage&) = default;
};

// Messages that occur several times, each time between ranks `apart` further on.
struct Copies {
  int times = 1;
  int apart = 0;
};

// The messages of a step that has too many messages to store. They are made part by part; all parts
// have the same number of messages.
struct PhaseParts {
  int count = 1;
  std::int64_t messages = 0;  // of each
  std::function<std::vector<CompactMessage>(int part)> make = {};
};

// One or more steps. Steps of the schedule that do not wait for each other may be one step here,
// which begins with the messages of the first of them.
struct CompactPhase {
  std::string name = {};
  std::int64_t steps = 1;  // all with the same messages
  // true: a rank sends in a step only after it has received all messages of earlier steps and
  // phases. false: its sends do not depend on its receives.
  bool waits = true;
  std::vector<CompactMessage> messages = {};  // in the order in which ports take them
  // Copies for groups of ranks that all do the same: `each` repeats each message, and `all` repeats
  // the whole list. So even a step of 2^20 ranks that meet at one level of a hierarchy is short.
  Copies each = {};
  Copies all = {};
  PhaseParts parts = {};  // with `make`: in place of all these, of a phase of one step
};

std::int64_t message_count(const CompactPhase& phase);
// Returns the number of messages in one part; a phase that stores its messages is one part.
std::int64_t messages_of_part(const CompactPhase& phase);

// Calls visit(message) for each message of one part, including copies, in their order.
template <typename Visit>
void for_each_message(const CompactPhase& phase, int part, const Visit& visit) {
  if (phase.parts.make) {
    for (const CompactMessage& message : phase.parts.make(part)) {
      visit(message);
    }
    return;
  }
  for (int i = 0; i < phase.all.times; ++i) {
    for (const CompactMessage& message : phase.messages) {
      CompactMessage copy = message;
      copy.from += i * phase.all.apart;
      copy.to += i * phase.all.apart;
      for (int k = 0; k < phase.each.times; ++k) {
        visit(copy);
        copy.from += phase.each.apart;
        copy.to += phase.each.apart;
      }
    }
  }
}

template <typename Visit>
void for_each_message(const CompactPhase& phase, const Visit& visit) {
  for (int part = 0; part < phase.parts.count; ++part) {
    for_each_message(phase, part, visit);
  }
}

struct CompactSchedule {
  Collective collective = Collective::barrier;
  std::string algorithm = {};
  int ranks = 1;
  std::int64_t chunks = 1;
  std::vector<CompactPhase> phases = {};
};

// Returns the messages of each step of a schedule, in the order of its moves. A compact form must
// have the same messages, either step by step or with several steps joined to one.
std::vector<std::vector<CompactMessage>> messages_by_step(const Schedule& schedule);
std::vector<std::vector<CompactMessage>> messages_by_step(const CompactSchedule& schedule);

}  // namespace unisono
