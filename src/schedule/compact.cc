#include "schedule/compact.h"

#include <map>
#include <utility>

namespace unisono {

std::int64_t message_count(const CompactPhase& phase) {
  return messages_of_part(phase) * phase.parts.count;
}

std::int64_t messages_of_part(const CompactPhase& phase) {
  if (phase.parts.make) {
    return phase.parts.messages;
  }
  return static_cast<std::int64_t>(phase.messages.size()) * phase.each.times * phase.all.times;
}

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
    std::vector<CompactMessage> messages;
    for_each_message(phase, [&](const CompactMessage& message) { messages.push_back(message); });
    steps.insert(steps.end(), static_cast<std::size_t>(phase.steps), messages);
  }
  return steps;
}

}  // namespace unisono
