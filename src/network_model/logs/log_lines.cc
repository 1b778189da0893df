#include "network_model/logs/log_lines.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace unisono::network_model {
namespace {

constexpr char kNumber = '\0';  // stands for a number in a shape

bool is_digit(char sign) {
  return sign >= '0' && sign <= '9';
}

// Maps "[1,0]<stdout>:" to "[N,N]<stdout>:". Joins runs of blanks into one, because launchers pad
// labels.
std::string shape_of(std::string_view prefix) {
  std::string shape;
  for (const char sign : prefix) {
    const char kind = is_digit(sign) ? kNumber : sign == '\t' ? ' ' : sign;
    if (shape.empty() || shape.back() != kind || (kind != kNumber && kind != ' ')) {
      shape += kind;
    }
  }
  return shape;
}

// Returns the length of the part of the line that matches the shape; 0 if its beginning does not
// match.
std::size_t match(std::string_view line, const std::string& shape) {
  std::size_t at = 0;
  for (const char kind : shape) {
    const std::size_t begin = at;
    const auto is_kind = [kind](char sign) {
      return kind == kNumber ? is_digit(sign) : sign == kind || (kind == ' ' && sign == '\t');
    };
    while (at < line.size() && is_kind(line[at]) &&
           (at == begin || kind == kNumber || kind == ' ')) {
      ++at;
    }
    // Blanks around a label are optional.
    if (at == begin && kind != ' ') {
      return 0;
    }
  }
  return at;
}

struct Digits {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Removes times and dates, which differ from line to line and do not identify the writer.
std::string without_times(std::string_view prefix) {
  constexpr std::size_t kYear = 4;
  constexpr std::size_t kSecondsSince1970 = 10;
  std::vector<Digits> groups;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if (is_digit(prefix[i]) && (i == 0 || !is_digit(prefix[i - 1]))) {
      groups.push_back({.begin = i, .end = i});
    }
    if (is_digit(prefix[i])) {
      groups.back().end = i + 1;
    }
  }
  std::vector<bool> is_time(groups.size(), false);
  const auto length = [&](std::size_t group) { return groups[group].end - groups[group].begin; };
  const auto between = [&](std::size_t group) {
    return prefix.substr(groups[group].end, groups[group + 1].begin - groups[group].end);
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    is_time[i] = is_time[i] || length(i) >= kSecondsSince1970;
    if (i + 2 < groups.size() && between(i) == between(i + 1)) {
      const bool is_date = (between(i) == "-" || between(i) == "/") &&
                           (length(i) == kYear || length(i + 2) == kYear);
      if (between(i) == ":" || is_date) {
        is_time[i] = is_time[i + 1] = is_time[i + 2] = true;
      }
    }
    if (is_time[i] && i + 1 < groups.size() && (between(i) == "." || between(i) == ",")) {
      is_time[i + 1] = true;
    }
  }
  std::string kept;
  std::size_t at = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    kept += prefix.substr(at, (is_time[i] ? groups[i].begin : groups[i].end) - at);
    at = groups[i].end;
  }
  kept += prefix.substr(at);
  std::erase_if(kept, [](char sign) { return sign == ' ' || sign == '\t'; });
  return kept;
}

// Removes the text that some launchers write after a line: "&#010;</stdout>" (mpirun --xml), and
// `\n","stream":"stdout"}` in Docker's log, which has a JSON object per line.
std::string_view without_tail(std::string_view line, std::string_view label) {
  if (label.starts_with("<")) {
    return line.substr(0, line.find("&#010;</"));
  }
  return label.starts_with("{\"") ? line.substr(0, line.find("\\n\",")) : line;
}

// Text that could also be numbers of a table is not a label.
bool is_label(std::string_view prefix) {
  return std::ranges::any_of(
      prefix, [](char sign) { return !is_digit(sign) && sign != ' ' && sign != '\t'; });
}

// Calls `take` for each line until it returns false.
template <typename Take>
void for_each_line(std::string_view text, const Take& take) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!take(text.substr(0, end), number)) {
      return;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void for_each_log_line(std::string_view text,
                       const std::function<std::size_t(std::string_view)>& heading_at,
                       const std::function<bool(const LogLine&)>& take) {
  constexpr std::size_t kMostShapes = 64;
  std::set<std::string> shapes;
  for_each_line(text, [&](std::string_view line, std::size_t) {
    const std::size_t at = heading_at(line);
    if (at != std::string_view::npos && is_label(line.substr(0, at)) &&
        shapes.size() < kMostShapes) {
      shapes.insert(shape_of(line.substr(0, at)));
    }
    return true;
  });
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    std::size_t label = 0;
    for (const std::string& shape : shapes) {
      label = std::max(label, match(line, shape));
    }
    return take({.text = without_tail(line.substr(label), line.substr(0, label)),
                 .number = number,
                 .source = without_times(line.substr(0, label))});
  });
}

}  // namespace unisono::network_model
