#include "network_model/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/catalog.h"
#include "base/wait_policy.h"
#include "base/words.h"
#include "network_model/csv.h"
#include "unisono/error.hpp"
#include "unisono/options.hpp"

namespace unisono::network_model {
namespace {

constexpr std::size_t kMostTableRows = 1'000'000;
constexpr std::size_t kMostMachines = 1000;  // each machine is fitted

enum Column : std::size_t {
  kMachine,
  kCollective,
  kAlgorithm,
  kRanks,
  kBytes,
  kTime,
  kWait,
  kOversubscribed,
  kThreads,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kNames = {"machine", "collective",     "algorithm",
                                                           "ranks",   "bytes",          "time_us",
                                                           "wait",    "oversubscribed", "threads"};
constexpr std::array kNeeded = {kNames[kCollective], kNames[kRanks], kNames[kBytes], kNames[kTime]};

class TableReader {
 public:
  // Returns an empty message if the line is valid.
  std::string read(std::string_view line) {
    const auto fields = csv_fields(line);
    if (!fields) {
      return "a double quote is not closed";
    }
    return columns_ == 0 ? read_names(*fields) : read_row(*fields);
  }
  bool has_names() const { return columns_ > 0; }
  Table take() { return std::move(table_); }

 private:
  std::string read_names(const std::vector<std::string>& names) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      const auto found = std::find(names.begin(), names.end(), kNames[column]);
      places_[column] =
          found == names.end() ? names.size() : static_cast<std::size_t>(found - names.begin());
    }
    columns_ = names.size();
    table_.account = csv_account(names, kNames);
    return csv_heading_problem(names, kNeeded);
  }

  std::string read_row(const std::vector<std::string>& fields) {
    if (fields.size() != columns_) {
      return std::to_string(fields.size()) + " fields, but the first line names " +
             std::to_string(columns_) + " columns";
    }
    if (table_.rows.size() == kMostTableRows) {
      return "more than " + std::to_string(kMostTableRows) + " rows";
    }
    const auto field = [&](Column column) {
      return places_[column] < fields.size() ? std::string_view(fields[places_[column]])
                                             : std::string_view();
    };
    Table::Row row{.machine = std::string(field(kMachine)), .point = {}};
    const auto collective = parse_collective(field(kCollective));
    if (!collective) {
      return "unknown collective " + in_quotes(field(kCollective));
    }
    row.point.collective = *collective;
    row.point.algorithm = field(kAlgorithm);
    if (!row.point.algorithm.empty() &&
        find_algorithm(*collective, row.point.algorithm) == nullptr) {
      return std::string(to_string(*collective)) + " has no algorithm " +
             in_quotes(row.point.algorithm);
    }
    const auto ranks = csv_number(field(kRanks));
    if (!ranks || *ranks < 1 || *ranks > 1e9 || *ranks != std::floor(*ranks)) {
      return in_quotes(field(kRanks)) + " is not a number of ranks";
    }
    row.point.ranks = static_cast<int>(*ranks);
    const auto bytes = csv_number(field(kBytes));
    if (!bytes || *bytes < 0 || *bytes > cost::kMostPointBytes) {
      return in_quotes(field(kBytes)) + " is not a number of bytes";
    }
    row.point.bytes = *bytes;
    const auto time_us = csv_number(field(kTime));
    if (!time_us || *time_us < cost::kLeastPointUs || *time_us > cost::kMostPointUs) {
      return in_quotes(field(kTime)) + " is not a time in microseconds";
    }
    row.point.time_s = *time_us * 1e-6;
    row.wait = field(kWait);
    if (!is_wait_policy(row.wait)) {
      return in_quotes(row.wait) + " is not a wait policy, such as \"spin=3000,yield_us=500\"";
    }
    const std::string_view oversubscribed = field(kOversubscribed);
    if (!oversubscribed.empty() && oversubscribed != "0" && oversubscribed != "1") {
      return in_quotes(oversubscribed) + " is neither 0 (one CPU per rank) nor 1 (oversubscribed)";
    }
    row.oversubscribed = oversubscribed == "1";
    if (const std::string_view threads = field(kThreads); !threads.empty()) {
      const auto number = csv_number(threads);
      if (!number || *number < 1 || *number > kMostThreads || *number != std::floor(*number)) {
        return in_quotes(threads) + " is not a number of threads";
      }
      row.threads = static_cast<int>(*number);
    }
    if (machines_.insert(row.machine).second && machines_.size() > kMostMachines) {
      return "more than " + std::to_string(kMostMachines) + " machines";
    }
    table_.rows.push_back(std::move(row));
    ++table_.account.used;
    return {};
  }

  static bool is_wait_policy(const std::string& text) {
    try {
      parse_wait_policy(text, {});
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  std::array<std::size_t, kColumns> places_ = {};
  std::size_t columns_ = 0;
  Table table_;
  std::set<std::string> machines_;
};

}  // namespace

std::vector<std::string> Table::machines() const {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (std::find(names.begin(), names.end(), row.machine) == names.end()) {
      names.push_back(row.machine);
    }
  }
  return names;
}

std::vector<cost::Point> Table::points(std::string_view machine) const {
  std::vector<cost::Point> points;
  for (const Row& row : rows) {
    if (row.machine == machine && row.wait.empty() && row.threads == 0) {
      points.push_back(row.point);
    }
  }
  return points;
}

Parsed<Table> parse_table(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  TableReader reader;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::string message = reader.read(line);
    if (!message.empty()) {
      return Parsed<Table>::failure(message, "line " + std::to_string(number));
    }
  }
  Table table = reader.take();
  if (table.rows.empty()) {
    return Parsed<Table>::failure("there are no measurements", "line " + std::to_string(number));
  }
  return Parsed<Table>::success(std::move(table));
}

}  // namespace unisono::network_model
