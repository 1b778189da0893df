#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "base/words.h"
#include "network_model/csv.h"
#include "network_model/expert_fit.h"

namespace unisono::network_model {
namespace {

constexpr std::size_t kMostPoints = 5'000;
constexpr std::size_t kMostMachines = 20;

// The numeric columns and their ranges.
struct Column {
  std::string_view name;
  double least;
  double most;
  bool whole;
};
constexpr std::array<Column, 9> kColumns = {{{"hosts", 1, 4096, true},
                                             {"ranks", 1, 65536, true},
                                             {"tokens", 1, 1e9, true},
                                             {"hidden", 1, 1e9, true},
                                             {"k", 1, 1e3, true},
                                             {"experts", 1, 1e6, true},
                                             {"processors", 0, 1e6, true},
                                             {"dispatch_us", 1e-3, 1e12, false},
                                             {"combine_us", 1e-3, 1e12, false}}};

class ExpertTableReader {
 public:
  // Returns an empty message if the line is valid.
  std::string read(std::string_view line) {
    const auto fields = csv_fields(line);
    if (!fields) {
      return "a double quote is not closed";
    }
    return names_.empty() ? read_names(*fields) : read_row(*fields);
  }
  ExpertTable take() { return std::move(table_); }

 private:
  std::string read_names(const std::vector<std::string>& names) {
    names_ = names;
    std::vector<std::string_view> needed = {"machine", "mode"};
    for (const Column& column : kColumns) {
      needed.push_back(column.name);
    }
    table_.account = csv_account(names_, needed);
    return csv_heading_problem(names_, needed);
  }

  const std::string& field(const std::vector<std::string>& fields, std::string_view name) const {
    return fields[static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin())];
  }

  std::string read_row(const std::vector<std::string>& fields) {
    if (fields.size() != names_.size()) {
      return std::to_string(fields.size()) + " fields, but the first line names " +
             std::to_string(names_.size()) + " columns";
    }
    std::array<double, kColumns.size()> values{};
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const Column& column = kColumns[i];
      const std::string& text = field(fields, column.name);
      const std::optional<double> value = csv_number(text);
      if (!value || *value < column.least || *value > column.most ||
          (column.whole && *value != std::floor(*value))) {
        return in_quotes(text) + " cannot be " + std::string(column.name);
      }
      values[i] = *value;
    }
    const std::string& mode = field(fields, "mode");
    if (mode != "low_latency" && mode != "normal") {
      return in_quotes(mode) + " is not a mode: low_latency or normal";
    }
    ExpertPoint point{.machine = field(fields, "machine"),
                      .mode = mode == "normal" ? ExpertMode::normal : ExpertMode::low_latency,
                      .hosts = static_cast<int>(values[0]),
                      .ranks = static_cast<int>(values[1]),
                      .shape = {.tokens = values[2],
                                .hidden = values[3],
                                .experts = static_cast<int>(values[5]),
                                .k = static_cast<int>(values[4])},
                      .processors = static_cast<int>(values[6]),
                      .dispatch_us = values[7],
                      .combine_us = values[8]};
    if (point.shape.k > point.shape.experts) {
      return "a token cannot choose " + std::to_string(point.shape.k) + " of " +
             std::to_string(point.shape.experts) + " experts";
    }
    if (point.mode == ExpertMode::normal && point.processors == 0) {
      return "the normal mode needs 1 or more processors";
    }
    if (point.ranks % point.hosts != 0) {
      return std::to_string(point.ranks) + " ranks cannot be divided evenly among " +
             std::to_string(point.hosts) + " hosts";
    }
    machines_.insert(point.machine);
    if (table_.points.size() == kMostPoints || machines_.size() > kMostMachines) {
      return "more than 5000 rows, or 20 machines";
    }
    table_.points.push_back(std::move(point));
    ++table_.account.used;
    return {};
  }

  std::vector<std::string> names_;
  ExpertTable table_;
  std::set<std::string> machines_;
};

}  // namespace

Parsed<ExpertTable> parse_expert_table(std::string_view text) {
  ExpertTableReader reader;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line == "\r" || line.front() == '#') {
      continue;
    }
    const std::string problem = reader.read(line);
    if (!problem.empty()) {
      return Parsed<ExpertTable>::failure(problem, "line " + std::to_string(number));
    }
  }
  ExpertTable table = reader.take();
  if (table.points.empty()) {
    return Parsed<ExpertTable>::failure("the table has no rows", "line 1");
  }
  return Parsed<ExpertTable>::success(std::move(table));
}

}  // namespace unisono::network_model
