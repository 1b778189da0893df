#include "schedule/text.h"

#include "schedule/cells.h"

namespace unisono {

std::string to_text(const Move& move) {
  const auto cell = [](int rank, Buffer buffer) {
    return std::to_string(rank) + "." + std::string(to_string(buffer));
  };
  std::string text = "step " + std::to_string(move.step) + ": " + cell(move.from, move.source) +
                     " -> " + cell(move.to, move.target);
  if (move.chunks == 1) {
    text += " chunk " + std::to_string(move.chunk);
  } else {
    text += " chunks " + std::to_string(move.chunk) + "-" +
            std::to_string(move.chunk + move.chunks - 1);
  }
  return text + (move.combine == Combine::reduce ? " reduce" : " replace");
}

std::string to_text(const Schedule& schedule) {
  std::string text = std::string(to_string(schedule.collective)) + "/" + schedule.algorithm +
                     " ranks=" + std::to_string(schedule.ranks) +
                     " root=" + std::to_string(schedule.root) +
                     " chunks=" + std::to_string(schedule.chunks) +
                     " steps=" + std::to_string(schedule.steps) + "\n";
  std::size_t phase = 0;
  for (const Move& move : schedule.moves) {
    while (phase < schedule.phases.size() && schedule.phases[phase].first_step <= move.step) {
      text += "phase " + schedule.phases[phase++].name + "\n";
    }
    text += to_text(move) + "\n";
  }
  return text;
}

}  // namespace unisono
