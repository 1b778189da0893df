#include "model/nccl_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace unisono::model {
namespace {

struct Test {
  std::string_view program;
  Collective collective;
};
constexpr std::array<Test, 8> kTests = {{{"all_reduce_perf", Collective::all_reduce},
                                         {"all_gather_perf", Collective::all_gather},
                                         {"reduce_scatter_perf", Collective::reduce_scatter},
                                         {"alltoall_perf", Collective::all_to_all},
                                         {"broadcast_perf", Collective::broadcast},
                                         {"reduce_perf", Collective::reduce},
                                         {"gather_perf", Collective::gather},
                                         {"scatter_perf", Collective::scatter}}};

std::vector<std::string> words_of(const std::string& line) {
  std::stringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    words.push_back(std::move(word));
  }
  return words;
}

bool is_header(const std::vector<std::string>& words) {
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return words.size() > 1 && words[0] == "#" && has("size") && has("time") && has("busbw");
}

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value)
                                                                  : std::nullopt;
}

class LogReader {
 public:
  explicit LogReader(std::optional<Collective> collective) : fallback_(collective) {}

  // Empty, or what is wrong.
  std::string read(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) {
      return {};
    }
    if (words[0].front() == '#') {
      read_comment(line, words);
      return {};
    }
    // What launchers and libraries print among it begins with other words.
    return time_column_ > 0 && number(words[0]) ? read_row(words) : std::string{};
  }

  Table take() { return std::move(table_); }

 private:
  void read_comment(const std::string& line, const std::vector<std::string>& words) {
    for (const Test& test : kTests) {
      if (line.find("starting: " + std::string(test.program)) != std::string::npos) {
        collective_ = test.collective;
        ranks_ = 0;
      }
    }
    if (line.find("nThread") != std::string::npos) {
      ranks_ = 0;
    }
    if (words.size() > 2 && words[1] == "Rank") {
      ++ranks_;
      const std::size_t device = line.rfind(']');
      device_ = device == std::string::npos ? "" : line.substr(device + 1);
      device_.erase(0, device_.find_first_not_of(' '));
    }
    if (is_header(words)) {
      // The mark of a comment stands before the first column.
      const auto found = std::find(words.begin(), words.end(), "time");
      time_column_ = static_cast<std::size_t>(found - words.begin()) - 1;
    }
  }

  std::string read_row(const std::vector<std::string>& words) {
    const std::optional<Collective> collective = collective_ ? collective_ : fallback_;
    if (!collective) {
      return "the log does not say which collective was tested";
    }
    if (ranks_ < 1) {
      return "a row before the ranks are listed: is the beginning of the log missing?";
    }
    constexpr std::size_t kColumnsOfAHalf = 4;  // time, algbw, busbw, errors
    const auto time_at = [&](std::size_t column) {
      return column < words.size() ? number(words[column]) : std::nullopt;
    };
    std::optional<double> time = time_at(time_column_);
    if (!time) {
      time = time_at(time_column_ + kColumnsOfAHalf);  // "N/A": tested in place only
    }
    const std::optional<double> bytes = number(words[0]);
    if (!time || *time < kLeastPointUs || *time > kMostPointUs || *bytes < 0 ||
        *bytes > kMostPointBytes) {
      return "a row without a time";
    }
    constexpr double kSecondsPerUs = 1e-6;
    table_.rows.push_back(
        {.machine = device_.empty() ? "" : device_ + " x " + std::to_string(ranks_),
         .point = {.collective = *collective,
                   .ranks = ranks_,
                   .bytes = *bytes,
                   .time_s = *time * kSecondsPerUs}});
    return {};
  }

  std::optional<Collective> fallback_;
  std::optional<Collective> collective_;
  int ranks_ = 0;
  std::string device_;
  std::size_t time_column_ = 0;  // 0: no header yet
  Table table_;
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  std::stringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (is_header(words_of(line))) {
      return true;
    }
  }
  return false;
}

Parsed<Table> parse_nccl_log(std::string_view text, std::optional<Collective> collective) {
  LogReader reader(collective);
  std::stringstream lines{std::string(text)};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    ++count;
    if (const std::string message = reader.read(line); !message.empty()) {
      return Parsed<Table>::failure(message, "line " + std::to_string(count));
    }
  }
  Table table = reader.take();
  if (table.rows.empty()) {
    return Parsed<Table>::failure("there are no measurements", "line " + std::to_string(count));
  }
  return Parsed<Table>::success(std::move(table));
}

}  // namespace unisono::model
