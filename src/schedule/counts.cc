#include "schedule/counts.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "base/words.h"

namespace unisono {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostRows = kMostCountedRanks;
constexpr const char* kNegative = "; a count must be 0 or more";
constexpr const char* kTooLarge = " is more than 2^63-1, the largest count";

std::string plural(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

CountProblem check_square(const CountRows& rows, std::size_t ranks, const std::string& place) {
  if (rows.size() > kMostRows) {
    return {"more than 4096 ranks", place};
  }
  if (rows.size() != ranks) {
    return {plural(rows.size(), "row") + ", but there " + (ranks == 1 ? "is " : "are ") +
                plural(ranks, "rank") + "; give one per rank",
            place};
  }
  for (std::size_t row = 0; row < ranks; ++row) {
    if (rows[row].size() != ranks) {
      return {plural(rows[row].size(), "count") + " in a table of " + plural(ranks, "row") +
                  "; give one row and one column per rank",
              place + "/" + std::to_string(row)};
    }
  }
  return {};
}

// Reads unisono.counts/1, or only the rows.
class CountsReader : public JsonReader {
 public:
  Counts counts;
  bool has_format = false;
  bool is_object = false;

 private:
  void null() override { wrong("null"); }
  void truth(bool) override { wrong("a truth value"); }
  void number(double value) override {
    if (rows_ != nullptr && value > static_cast<double>(kMost)) {
      fail("a count of more than 2^63-1, the largest one");
    }
    wrong("a number that is not whole, or too large,");
  }
  void whole(std::int64_t value) override {
    if (key_ == "element_bytes") {
      if (value < 1 || value > kMostElementBytes) {
        fail(std::to_string(value) + "; an element must have 1 to 2^30 bytes");
      }
      counts.element_bytes = value;
      return;
    }
    if (rows_ == nullptr || rows_depth_ != 2) {
      wrong("a number");
    }
    if (value < 0) {
      fail(std::to_string(value) + kNegative);
    }
    if (rows_->back().size() >= kMostRows) {
      fail("more than 4096 ranks");
    }
    rows_->back().push_back(value);
  }
  void text(std::string value) override {
    if (key_ != "format") {
      wrong("a string");
    }
    if (value != kCountsFormat) {
      fail("unknown version " + in_quotes(value) + ", this reads " + std::string(kCountsFormat));
    }
    has_format = true;
  }
  void begin_object() override {
    if (depth() != 0) {
      wrong("an object");
    }
    is_object = true;
  }
  void key(const std::string& name) override {
    if (name != "format" && name != "element_bytes" && name != "send" && name != "receive") {
      fail("unknown key " + in_quotes(name) + "; known are format, element_bytes, send, receive");
    }
    key_ = name;
    rows_ = name == "send" ? &counts.send : name == "receive" ? &counts.receive : nullptr;
  }
  void end_object() override {}
  void begin_array() override {
    if (depth() == 0) {
      rows_ = &counts.send;
    }
    if (rows_ == nullptr || rows_depth_ == 2) {
      wrong("an array");
    }
    if (++rows_depth_ == 2) {
      if (rows_->size() >= kMostRows) {
        fail("more than 4096 ranks");
      }
      rows_->emplace_back();
    }
  }
  void end_array() override { --rows_depth_; }

  [[noreturn]] void wrong(const std::string& found) const {
    fail(found + " where " +
         (depth() == 0       ? "rows of counts belong"
          : key_ == "format" ? "the format belongs"
          : rows_ == nullptr ? "a whole number belongs"
          : rows_depth_ == 2 ? "a whole number belongs"
          : rows_depth_ == 1 ? "a row of counts belongs"
                             : "rows of counts belong"));
  }

  CountRows* rows_ = nullptr;
  int rows_depth_ = 0;
  std::string key_;
};

Parsed<Counts> parse_json_counts(std::string_view text) {
  CountsReader reader;
  try {
    reader.read(text);
  } catch (const JsonProblem& problem) {
    return Parsed<Counts>::failure(problem.message, problem.position);
  }
  if (reader.is_object && !reader.has_format) {
    return Parsed<Counts>::failure("missing", "/format");
  }
  if (reader.is_object && reader.counts.send.empty()) {
    return Parsed<Counts>::failure("no counts; give one row per rank", "/send");
  }
  CountProblem problem = check_counts(reader.counts);
  if (!reader.is_object && problem.position.starts_with("/send")) {
    problem.position.erase(0, std::string_view("/send").size());
  }
  return problem.message.empty() ? Parsed<Counts>::success(std::move(reader.counts))
                                 : Parsed<Counts>::failure(problem.message, problem.position);
}

constexpr std::string_view kBetween = " \t,;\r";

// Parses the numbers of a line. Returns the error; empty if there is none.
std::string read_row(std::string_view line, std::vector<std::int64_t>& row) {
  line = line.substr(0, line.find('#'));
  for (std::size_t at = line.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc::result_out_of_range && stop == word.data() + word.size()) {
      return in_quotes(word) + (word.front() == '-' ? kNegative : kTooLarge);
    }
    if (error != std::errc() || stop != word.data() + word.size()) {
      return in_quotes(word) + " is not a whole number";
    }
    if (value < 0) {
      return in_quotes(word) + kNegative;
    }
    if (row.size() >= kMostRows) {
      return "more than 4096 ranks";
    }
    row.push_back(value);
    at = line.find_first_not_of(kBetween, end);
  }
  return {};
}

Parsed<Counts> parse_table(std::string_view text) {
  Counts counts;
  std::vector<std::size_t> lines;  // of the rows
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    std::vector<std::int64_t> row;
    std::string wrong = read_row(text.substr(at, end - at), row);
    if (wrong.empty() && !row.empty() && counts.send.size() >= kMostRows) {
      wrong = "more than 4096 ranks";
    }
    if (!wrong.empty()) {
      return Parsed<Counts>::failure(wrong, "line " + std::to_string(number));
    }
    if (!row.empty()) {
      counts.send.push_back(std::move(row));
      lines.push_back(number);
    }
    at = end + 1;
  }
  CountProblem problem = check_counts(counts);
  if (problem.message.empty()) {
    return Parsed<Counts>::success(std::move(counts));
  }
  constexpr std::string_view kRow = "/send/";
  std::size_t row = 0;
  if (problem.position.starts_with(kRow)) {
    std::from_chars(problem.position.data() + kRow.size(),
                    problem.position.data() + problem.position.size(), row);
    return Parsed<Counts>::failure(problem.message, "line " + std::to_string(lines[row]));
  }
  return Parsed<Counts>::failure(problem.message, "");
}

std::string rows_text(const CountRows& rows, std::string_view indent) {
  std::string text = "[";
  for (const std::vector<std::int64_t>& row : rows) {
    text += (&row == &rows.front() ? "\n" : ",\n") + std::string(indent) + "  [";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(row[i]);
    }
    text += "]";
  }
  return text + "]";
}

}  // namespace

CountProblem check_counts(const Counts& counts) {
  if (counts.send.empty()) {
    return {"no counts; give one row per rank", "/send"};
  }
  CountProblem problem = check_square(counts.send, counts.send.size(), "/send");
  if (problem.message.empty() && !counts.receive.empty()) {
    problem = check_square(counts.receive, counts.send.size(), "/receive");
  }
  for (const CountRows* rows : {&counts.send, &counts.receive}) {
    std::int64_t left = kMost / counts.element_bytes;
    for (std::size_t row = 0; problem.message.empty() && row < rows->size(); ++row) {
      for (const std::int64_t count : (*rows)[row]) {
        left -= count;
        if (left < 0) {
          problem = {"up to here the counts exceed 2^63-1 bytes, at " +
                         plural(static_cast<std::size_t>(counts.element_bytes), "byte") +
                         " per element; give smaller counts or elements",
                     (rows == &counts.send ? "/send/" : "/receive/") + std::to_string(row)};
          break;
        }
      }
    }
  }
  return problem;
}

CountTotals totals_of(const Counts& counts) {
  CountTotals totals;
  for (int rank = 0; rank < counts.ranks(); ++rank) {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int other = 0; other < counts.ranks(); ++other) {
      sent += counts.sent(rank, other);
      received += counts.expected(rank, other);
      totals.largest = std::max(totals.largest, counts.sent(rank, other));
    }
    totals.all += sent;
    if (sent > totals.most_sent) {
      totals.most_sent = sent;
      totals.busiest_sender = rank;
    }
    if (received > totals.most_received) {
      totals.most_received = received;
      totals.busiest_receiver = rank;
    }
  }
  return totals;
}

Parsed<Counts> parse_counts(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json =
      first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  return is_json ? parse_json_counts(text) : parse_table(text);
}

std::string counts_members(const Counts& counts, std::string_view indent) {
  const std::string before = "\n" + std::string(indent);
  std::string text = before + "\"element_bytes\": " + std::to_string(counts.element_bytes) + "," +
                     before + "\"send\": " + rows_text(counts.send, indent);
  if (!counts.receive.empty()) {
    text += "," + before + "\"receive\": " + rows_text(counts.receive, indent);
  }
  return text;
}

std::string to_json(const Counts& counts) {
  return "{\n  \"format\": \"" + std::string(kCountsFormat) + "\"," + counts_members(counts, "  ") +
         "\n}\n";
}

}  // namespace unisono
