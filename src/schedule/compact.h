// A schedule in short: the messages of one step, and how often the step is repeated.
//
// A ring over 16384 ranks has 5e8 moves, but all its steps are alike: who sends to whom, and how
// much. Which chunks they are does not matter to the time. Where every step of an algorithm waits
// for the step before (or none does), this is enough to simulate it.
#pragma once

#include <cstdint>
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

// Steps of the schedule that do not wait for each other may be one step here, with the messages of
// the first of them first.
struct CompactPhase {
  std::string name = {};
  std::int64_t steps = 1;  // all with the same messages
  // true: a rank sends in a step only after it has all that it receives in earlier steps, also of
  // earlier phases. false: what it sends does not depend on what it receives.
  bool waits = true;
  std::vector<CompactMessage> messages = {};  // in the order in which ports take them
};

struct CompactSchedule {
  Collective collective = Collective::barrier;
  std::string algorithm = {};
  int ranks = 1;
  std::int64_t chunks = 1;
  std::vector<CompactPhase> phases = {};
};

// The messages of each step of a schedule, in the order of its moves: what a compact form must
// have, step for step or several steps in one.
std::vector<std::vector<CompactMessage>> messages_by_step(const Schedule& schedule);
std::vector<std::vector<CompactMessage>> messages_by_step(const CompactSchedule& schedule);

// Phases of a smaller schedule on some ranks of a larger one: rank i is members[i], and each of its
// chunks is `width` of the larger one.
CompactPhase place(const CompactPhase& phase, const std::vector<int>& members, std::int64_t width);
// Adds the messages of `other` to `phase`, as groups that work side by side. REQUIRES: equal steps.
void join(CompactPhase& phase, const CompactPhase& other);

}  // namespace unisono
