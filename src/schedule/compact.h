// A schedule in short: the messages of one step, and how often the step is repeated.
//
// A ring over 16384 ranks has 5e8 moves, but all its steps are alike: who sends to whom, and how
// much. Which chunks they are does not matter to the time. Where every step of an algorithm waits
// for the step before (or none does), this is enough to simulate it.
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

// Messages of a step that are too many to keep all of them: made part by part, each as long as the
// others.
struct PhaseParts {
  int count = 1;
  std::int64_t messages = 0;  // of each
  std::function<std::vector<CompactMessage>(int part)> make = {};
};

// Steps of the schedule that do not wait for each other may be one step here, with the messages of
// the first of them first.
struct CompactPhase {
  std::string name = {};
  std::int64_t steps = 1;  // all with the same messages
  // true: a rank sends in a step only after it has received all messages of earlier steps, also of
  // earlier phases. false: its sends do not depend on its receives.
  bool waits = true;
  std::vector<CompactMessage> messages = {};  // in the order in which ports take them
  // For groups of ranks that all do the same: consecutive copies of a message, and copies of all of
  // this. It keeps a step of 2^20 ranks that meet at one level of a hierarchy short.
  Copies each = {};
  Copies all = {};
  PhaseParts parts = {};  // with `make`: in place of all these, of a phase of one step
};

std::int64_t message_count(const CompactPhase& phase);
// The messages of one part; a phase that is kept is one part.
std::int64_t messages_of_part(const CompactPhase& phase);

// Calls visit(message) for each message of one part, copies and all, in their order.
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
// have the same messages, step for step or with several steps in one.
std::vector<std::vector<CompactMessage>> messages_by_step(const Schedule& schedule);
std::vector<std::vector<CompactMessage>> messages_by_step(const CompactSchedule& schedule);

}  // namespace unisono
