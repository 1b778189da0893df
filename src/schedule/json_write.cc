#include <string>
#include <string_view>

#include "schedule/cells.h"
#include "schedule/json.h"

namespace unisono {
namespace {

std::string escaped(const std::string& text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += "\\u00";
      result += kHex[byte >> 4U];
      result += kHex[byte & 0xfU];
    } else {
      result += c;
    }
  }
  return result + '"';
}

// `"name": [a, b, c]` of one value a row.
template <typename Rows, typename Value>
std::string column(const char* name, const Rows& rows, const Value& value) {
  std::string text = std::string("\"") + name + "\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += (i == 0 ? "" : ", ") + value(rows[i]);
  }
  return text + "]";
}

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
  text += "  \"algorithm\": " + escaped(schedule.algorithm) + ",\n";
  text += number_line("ranks", schedule.ranks) + number_line("root", schedule.root) +
          number_line("chunks", schedule.chunks) + number_line("steps", schedule.steps);
  text += "  \"file\": " + escaped(schedule.file) + ",\n  \"phases\": {\n    ";
  const auto& phases = schedule.phases;
  text += column("name", phases, [](const Phase& phase) { return escaped(phase.name); });
  text += ",\n    " + column("first_step", phases,
                             [](const Phase& phase) { return std::to_string(phase.first_step); });
  text += "\n  },\n  \"moves\": {";
  const auto& moves = schedule.moves;
  const auto number = [&](const char* name, auto member) {
    text +=
        "\n    " +
        column(name, moves, [member](const Move& move) { return std::to_string(move.*member); }) +
        ",";
  };
  const auto buffer = [&](const char* name, Buffer Move::* member) {
    text += "\n    " +
            column(name, moves, [member](const Move& move) { return buffer_word(move.*member); }) +
            ",";
  };
  number("step", &Move::step);
  number("from", &Move::from);
  number("to", &Move::to);
  number("chunk", &Move::chunk);
  number("chunks", &Move::chunks);
  buffer("source", &Move::source);
  buffer("target", &Move::target);
  text +=
      "\n    " +
      column("combine", moves,
             [](const Move& move) {
               return std::string(move.combine == Combine::reduce ? "\"reduce\"" : "\"replace\"");
             }) +
      ",";
  number("line", &Move::line);
  text.back() = '\n';
  return text + "  }\n}\n";
}

}  // namespace unisono
