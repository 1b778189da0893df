// The counts of an exchange as a table: a row for each sender, a column for each receiver.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "show/show.h"

namespace unisono::cli {
namespace {

std::string unit_of(const Counts& counts) {
  return counts.element_bytes == 1 ? "bytes"
                                   : fmt::format("elements of {} bytes", counts.element_bytes);
}

// A row of right-aligned cells, without blanks at its end.
std::string line_of(const std::string& name, const std::vector<std::string>& cells,
                    std::size_t name_width, std::size_t width) {
  std::string text = fmt::format("{:<{}}", name, name_width);
  for (const std::string& cell : cells) {
    text += fmt::format("  {:>{}}", cell, width);
  }
  return text + "\n";
}

}  // namespace

std::string draw_counts(const Counts& counts, int width, const Console& console) {
  const CountTotals totals = totals_of(counts);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> names = {""};
  rows.emplace_back();
  std::vector<std::int64_t> received(static_cast<std::size_t>(counts.ranks()));
  for (int to = 0; to < counts.ranks(); ++to) {
    rows.back().push_back(fmt::format("to {}", to));
  }
  rows.back().emplace_back("sum");
  for (int from = 0; from < counts.ranks(); ++from) {
    const std::vector<std::int64_t>& row = counts.send[static_cast<std::size_t>(from)];
    names.push_back(fmt::format("from {}", from));
    rows.emplace_back();
    for (std::size_t to = 0; to < row.size(); ++to) {
      rows.back().push_back(std::to_string(row[to]));
      received[to] += row[to];
    }
    rows.back().push_back(std::to_string(std::accumulate(row.begin(), row.end(), std::int64_t{0})));
  }
  names.emplace_back("sum");
  rows.emplace_back();
  for (const std::int64_t sum : received) {
    rows.back().push_back(std::to_string(sum));
  }
  rows.back().push_back(std::to_string(totals.all));

  std::size_t cell = 0;
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& text : row) {
      cell = std::max(cell, text.size());
    }
  }
  const std::size_t name = std::max_element(names.begin(), names.end(), [](auto& a, auto& b) {
                             return a.size() < b.size();
                           })->size();
  if (name + (cell + 2) * rows.front().size() > static_cast<std::size_t>(width)) {
    return fmt::format("{} {} in all; at most {} sent (rank {}), {} received (rank {})\n",
                       totals.all, unit_of(counts), totals.most_sent, totals.busiest_sender,
                       totals.most_received, totals.busiest_receiver);
  }
  std::string text =
      console.paint(Paint::strong,
                    fmt::format("{} that each rank sends to every other rank", unit_of(counts))) +
      "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += line_of(names[i], rows[i], name, cell);
  }
  return text;
}

}  // namespace unisono::cli
