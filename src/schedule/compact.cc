#include "schedule/compact.h"

#include <map>
#include <utility>

namespace unisono {

std::vector<std::vector<CompactMessage>> messages_by_step(const Schedule& schedule) {
  std::vector<std::vector<CompactMessage>> steps(static_cast<std::size_t>(schedule.steps));
  std::map<std::pair<int, int>, std::size_t> places;
  int step = -1;
  for (const Move& move : schedule.moves) {
    if (move.step != step) {
      step = move.step;
      places.clear();
    }
    if (move.from == move.to) {
      continue;
    }
    std::vector<CompactMessage>& messages = steps[static_cast<std::size_t>(step)];
    const auto [place, added] = places.try_emplace(std::pair(move.from, move.to), messages.size());
    if (added) {
      messages.push_back({.from = move.from, .to = move.to});
    }
    CompactMessage& message = messages[place->second];
    message.chunks += move.chunks;
    message.reduced += move.combine == Combine::reduce ? move.chunks : 0;
  }
  return steps;
}

std::vector<std::vector<CompactMessage>> messages_by_step(const CompactSchedule& schedule) {
  std::vector<std::vector<CompactMessage>> steps;
  for (const CompactPhase& phase : schedule.phases) {
    steps.insert(steps.end(), static_cast<std::size_t>(phase.steps), phase.messages);
  }
  return steps;
}

CompactPhase place(const CompactPhase& phase, const std::vector<int>& members, std::int64_t width) {
  CompactPhase result = phase;
  for (CompactMessage& message : result.messages) {
    message.from = members[static_cast<std::size_t>(message.from)];
    message.to = members[static_cast<std::size_t>(message.to)];
    message.chunks *= width;
    message.reduced *= width;
  }
  return result;
}

void join(CompactPhase& phase, const CompactPhase& other) {
  phase.messages.insert(phase.messages.end(), other.messages.begin(), other.messages.end());
}

}  // namespace unisono
