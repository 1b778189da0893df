#include <string>
#include <string_view>

#include "base/json_text.h"
#include "schedule/cells.h"
#include "schedule/json.h"

namespace unisono {
namespace {

std::string buffer_word(Buffer buffer) {
  return "\"" + std::string(to_string(buffer)) + "\"";
}

std::string number_line(const char* name, int value) {
  return std::string("  \"") + name + "\": " + std::to_string(value) + ",\n";
}

}  // namespace

std::string to_json(const Schedule& schedule) {
  std::string text = "{\n  \"format\": \"" + std::string(kScheduleFormat) + "\",\n";
  text += "  \"collective\": \"" + std::string(to_string(schedule.collective)) + "\",\n";
  text += "  \"algorithm\": " + json_string(schedule.algorithm) + ",\n";
  text += number_line("ranks", schedule.ranks) + number_line("root", schedule.root) +
          number_line("chunks", schedule.chunks) + number_line("steps", schedule.steps);
  text += "  \"file\": " + json_string(schedule.file) + ",\n  \"phases\": {\n    ";
  const auto& phases = schedule.phases;
  text += json_column("name", phases, [](const Phase& phase) { return json_string(phase.name); });
  text += ",\n    " + json_column("first_step", phases, [](const Phase& phase) {
            return std::to_string(phase.first_step);
          });
  text += "\n  },\n  \"moves\": {";
  const auto& moves = schedule.moves;
  const auto number = [&](const char* name, auto member) {
    text += "\n    " +
            json_column(name, moves,
                        [member](const Move& move) { return std::to_string(move.*member); }) +
            ",";
  };
  const auto buffer = [&](const char* name, Buffer Move::* member) {
    text +=
        "\n    " +
        json_column(name, moves, [member](const Move& move) { return buffer_word(move.*member); }) +
        ",";
  };
  number("step", &Move::step);
  number("from", &Move::from);
  number("to", &Move::to);
  number("chunk", &Move::chunk);
  number("chunks", &Move::chunks);
  buffer("source", &Move::source);
  buffer("target", &Move::target);
  text += "\n    " +
          json_column(
              "combine", moves,
              [](const Move& move) {
                return std::string(move.combine == Combine::reduce ? "\"reduce\"" : "\"replace\"");
              }) +
          ",";
  number("line", &Move::line);
  text.back() = '\n';
  text += "  }";
  if (!schedule.counts.empty()) {
    text += ",\n  \"counts\": {" + counts_members(schedule.counts, "    ") + "\n  }";
  }
  return text + "\n}\n";
}

}  // namespace unisono
