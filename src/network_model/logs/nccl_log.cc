// Parses the output of nccl-tests, as text and as JSON. Columns are found by their names, because
// their number differs between versions and relatives.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/json.h"
#include "network_model/logs/log_format.h"

namespace unisono::network_model {
namespace {

constexpr const char* kCpuTime = "that time the CPU (-C 1), not the collective";

// Maps "./build/all_reduce_perf," to "all_reduce_perf"; empty if the word does not name a test.
std::string_view test_in(std::string_view word) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const std::size_t mark = word.find("_perf");
  if (mark == kNoPlace || mark == 0) {
    return {};
  }
  const std::size_t end = std::min(word.find_first_not_of(kLetters, mark), word.size());
  const std::size_t before = word.find_last_not_of(kLetters, mark);
  const std::size_t begin = before == kNoPlace ? 0 : before + 1;
  // The name of a log, all_reduce_perf.log, does not start a test.
  const bool is_program = end == word.size() || word.substr(end) == "," || word[end] == '"' ||
                          word[end] == '\'' || word[end] == ';' || word[end] == ':';
  return is_program && begin < mark ? word.substr(begin, end - begin) : std::string_view{};
}

// The columns of one half of a table.
struct Half {
  std::size_t us = kNoPlace;
  std::size_t algbw = kNoPlace;
  std::size_t busbw = kNoPlace;
  std::size_t wrong = kNoPlace;
};

struct Columns {
  std::size_t count = 0;  // without timestamp columns; 0: no heading yet
  std::size_t type = kNoPlace;
  std::size_t redop = kNoPlace;
  std::size_t root = kNoPlace;
  Half out_of_place = {};
  Half in_place = {};
  bool is_cpu_time = false;      // with -C 1
  bool has_timestamps = false;   // with -T: a date and a time follow each row
  bool has_other_units = false;  // other than microseconds
  // Returns the number of columns of one half; 0 if the table has only one half.
  std::size_t half() const {
    const std::size_t us = out_of_place.us;
    const std::size_t other = in_place.us;
    return other == kNoPlace || us == kNoPlace ? 0 : us < other ? other - us : us - other;
  }
};

// Returns an empty count if the line is not a heading of columns.
Columns columns_of(std::string_view line, bool is_in_place_first) {
  std::vector<std::string_view> words = words_of(line.substr(line.find('#') + 1));
  const auto has = [&words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  const bool is_heading = line.starts_with("#") && words.size() > 3 && words[0] == "size" &&
                          (has("time") || has("cputime")) && has("busbw");
  if (!is_heading) {
    return {};
  }
  const bool has_timestamps = words.back() == "timestamp";
  words.resize(words.size() - (has_timestamps ? 1 : 0));
  std::vector<Half> halves;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "time" || words[i] == "cputime") {
      halves.push_back({.us = i});
    } else if (!halves.empty() && words[i] == "algbw") {
      halves.back().algbw = i;
    } else if (!halves.empty() && words[i] == "busbw") {
      halves.back().busbw = i;
    } else if (!halves.empty() && words[i] == "#wrong") {
      halves.back().wrong = i;
    }
  }
  halves.resize(2);
  const auto place_of = [&words](std::string_view word) {
    const auto found = std::ranges::find(words, word);
    return found == words.end() ? kNoPlace : static_cast<std::size_t>(found - words.begin());
  };
  if (is_in_place_first) {
    std::swap(halves[0], halves[1]);
  }
  return {.count = words.size(),
          .type = place_of("type"),
          .redop = place_of("redop"),
          .root = place_of("root"),
          .out_of_place = halves[0],
          .in_place = halves[1],
          .is_cpu_time = has("cputime"),
          .has_timestamps = has_timestamps};
}

// Returns the length of the longest run of blanks between two words.
std::size_t widest_gap(std::string_view line) {
  std::size_t widest = 0;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const std::size_t blank = std::min(line.find(' ', at), line.size());
    at = std::min(line.find_first_not_of(" \r", blank), line.size());
    widest = at < line.size() ? std::max(widest, at - blank) : widest;
  }
  return widest;
}

// A count of 0 or "N/A" means right results; a word that is not a number means wrong results.
bool is_wrong(std::string_view word) {
  return word != "N/A" && !(number_of(word).value_or(NAN) < 1);
}

std::string root_text(std::optional<double> root) {
  return root.value_or(-1) >= 0 && *root < 1e6 ? " root " + std::to_string(static_cast<int>(*root))
                                               : std::string();
}

class NcclTests : public LogFormat {
 public:
  std::string_view name() const override { return "nccl-tests"; }

  std::size_t heading_at(std::string_view line) const override {
    constexpr std::array<std::string_view, 4> kHeadings = {
        "# nThread", "# Collective test starting:", "# nccl-tests version", "# Using devices"};
    std::size_t first = kNoPlace;
    for (const std::string_view heading : kHeadings) {
      first = std::min(first, line.find(heading));
    }
    for (std::size_t at = line.find('#'); first == kNoPlace && at != kNoPlace;
         at = line.find('#', at + 1)) {
      first = columns_of(line.substr(at), false).count > 0 ? at : first;
    }
    return first == kNoPlace && is_bare_row(words_of(line)) ? 0 : first;
  }

  void see(std::string_view line) override {
    if (line.find("_perf") == kNoPlace || line.starts_with("# Collective test")) {
      return;
    }
    for (const std::string_view word : words_of(line)) {
      if (const std::string_view test = test_in(word); !test.empty()) {
        command_ = test;
      }
    }
  }

  void read(const LogLine& line) override {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) {
      return;
    }
    if (words[0].front() == '#') {
      read_comment(line, words);
    } else if (words.size() > 1 && number_of(words[0]) && number_of(words[1])) {
      read_row(line, words);
    } else if (columns_.count > 0 && !table().is_failed &&
               (is_like_row(words) || has_row_behind(words))) {
      add({.line = line.number,
           .bytes = number_of(words[0]).value_or(0),
           .flaw = "that are cut off, or mixed with other output"});
    }
  }

 private:
  // Accepts a row whose size is not a number, too: "1M 262144 float sum -1 44.20 ..."
  bool is_like_row(const std::vector<std::string_view>& words) const {
    const auto numbers = std::ranges::count_if(
        words, [](std::string_view word) { return number_of(word).has_value(); });
    const bool is_as_long =
        words.size() <= columns_.count && static_cast<std::size_t>(numbers) * 2 > columns_.count;
    return number_of(words[0]) ||
           (is_as_long && words[0].front() >= '0' && words[0].front() <= '9');
  }

  // Detects other output with a row at its end: "host-1:7231 NCCL WARN slow 1048576 262144 float
  // sum ..."
  bool has_row_behind(const std::vector<std::string_view>& words) const {
    if (words.size() < columns_.count || columns_.type == kNoPlace) {
      return false;
    }
    const auto row = std::span(words).last(columns_.count);
    const auto numbers = std::ranges::count_if(
        row, [](std::string_view word) { return number_of(word).has_value(); });
    return number_of(row[1]) && !number_of(row[columns_.type]) &&
           static_cast<std::size_t>(numbers) * 2 > columns_.count;
  }

  // Detects a row without its heading: size, count, type, operation, root, and two halves.
  static bool is_bare_row(const std::vector<std::string_view>& words) {
    constexpr std::size_t kBare = 13;
    if (words.size() != kBare || number_of(words[2]) || number_of(words[3])) {
      return false;
    }
    const auto bytes = number_of(words[0]);
    const auto us = number_of(words[5]);
    const auto algbw = number_of(words[6]);
    return bytes && number_of(words[1]) && number_of(words[4]) && us && algbw && *us > 0 &&
           std::abs(*bytes / *us / 1e3 - *algbw) < 0.02 + 0.02 * *algbw;
  }

  void begin_test(std::string test, std::size_t line) {
    begin(std::move(test), line);
    columns_ = {};
    blank_ = 0;
    is_in_place_first_ = false;
    command_.clear();
  }
  // Call it for a line that can only be at the beginning of a test.
  void begin_unless_new(std::size_t line) {
    if (!has_table() || !table().rows.empty() || table().is_failed) {
      begin_test(command_, line);
    }
  }

  void read_comment(const LogLine& line, const std::vector<std::string_view>& words) {
    const std::string_view text = line.text;
    if (text.find("test starting:") != kNoPlace) {
      std::string_view test = text.substr(text.find("starting:") + 9);
      test = test.substr(std::min(test.find_first_not_of(' '), test.size()));
      test = test.substr(0, test.find_first_of(" \t\r"));
      begin_test(std::string(test.substr(test.rfind('/') + 1)), line.number);
    } else if (text.find("test concluded:") != kNoPlace) {
      begin_test("", line.number);
    } else if (text.find("nThread") != kNoPlace) {
      begin_unless_new(line.number);
      if (!table().ranks.empty()) {
        begin_test(command_, line.number);
      }
      if (table().test.empty() && !command_.empty()) {
        begin_test(command_, line.number);
      }
      read_arguments(words);
    } else if (words.size() > 2 && words[1] == "Rank") {
      begin_unless_new(line.number);
      read_rank(text, words);
    } else if (text.find("in-place") != kNoPlace) {
      const std::size_t out = text.find("out-of-place");
      is_in_place_first_ = text.find("in-place") < out;
    } else if (const Columns columns = columns_of(text, is_in_place_first_); columns.count > 0) {
      begin_unless_new(line.number);
      columns_ = columns;
    } else if (columns_.count > 0 && text.find("(B)") != kNoPlace &&
               text.find("(us)") == kNoPlace) {
      columns_.has_other_units = true;
    } else if (text.find("Out of bounds values") != kNoPlace && has_table()) {
      table().is_failed = text.find("FAILED") != kNoPlace;
    }
  }

  void read_arguments(const std::vector<std::string_view>& words) {
    double ranks = 1;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "nThread" || words[i] == "nGpus") {
        ranks *= std::clamp(number_of(words[i + 1]).value_or(1), 1.0, 1e3);
      }
    }
    table().least_ranks = static_cast<int>(ranks);
  }

  // Reads "#  Rank  0 Group  0 Pid   7231 on    host-1 device  1 [0000:43:00] NVIDIA H100 80GB
  // HBM3".
  void read_rank(std::string_view text, const std::vector<std::string_view>& words) {
    constexpr double kMost = 1e6;
    const double rank = number_of(words[2]).value_or(-1);
    if (!(rank >= 0 && rank < kMost)) {
      return;
    }
    ++table().ranks[static_cast<int>(rank)];
    if (words.size() > 4 && words[3] == "Group") {
      ++table().groups[static_cast<int>(std::clamp(number_of(words[4]).value_or(0), 0.0, kMost))];
    }
    const std::size_t device = text.rfind(']');
    const std::vector<std::string_view> names =
        words_of(device == kNoPlace ? "" : text.substr(device + 1));
    std::string name;
    for (const std::string_view word : names) {
      name += (name.empty() ? "" : " ") + std::string(word);
    }
    constexpr std::size_t kMostDevices = 4;
    if (!name.empty() && table().devices.size() < kMostDevices) {
      table().devices.insert(name);
    }
  }

  void read_row(const LogLine& line, std::vector<std::string_view> words) {
    if (columns_.count == 0) {
      if (!is_bare_row(words)) {
        return;  // output of other programs in between
      }
      begin_unless_new(line.number);
      columns_ = {.count = words.size(),
                  .type = 2,
                  .redop = 3,
                  .out_of_place = {.us = 5, .algbw = 6, .busbw = 7, .wrong = 8},
                  .in_place = {.us = 9, .algbw = 10, .busbw = 11, .wrong = 12}};
    }
    if (columns_.has_timestamps && words.size() > 2 && words.back().find(':') != kNoPlace) {
      words.resize(words.size() - 2);
    }
    PrintedRow row{.line = line.number, .bytes = *number_of(words[0])};
    if (columns_.has_other_units) {
      row.flaw = kOtherUnit;
    } else if (columns_.is_cpu_time) {
      row.flaw = kCpuTime;
    } else if (words.size() > columns_.count) {
      row.flaw = "with more columns than their heading";
    } else if (!read_halves(words, row) && !read_one_half(line.text, words, row)) {
      row.flaw = "that are cut off, or mixed with other output";
    }
    row.kind = kind_in(words);
    add(std::move(row));
  }

  // Returns the data type, the operation and the root. "none" or blank means that there is no
  // operation, and -1 that there is no root.
  std::string kind_in(const std::vector<std::string_view>& words) const {
    std::string kind;
    for (const std::size_t column : {columns_.type, columns_.redop}) {
      if (column < words.size() && !number_of(words[column]) && words[column] != "none") {
        kind += (kind.empty() ? "" : " ") + std::string(words[column]);
      }
    }
    const bool has_root = columns_.root < columns_.count && words.size() >= columns_.count;
    return kind + (has_root ? root_text(number_of(words[columns_.root])) : "");
  }

  // Some versions leave the operation or the root blank, so the halves are taken from the end.
  bool read_halves(const std::vector<std::string_view>& words, PrintedRow& row) {
    constexpr std::size_t kMostBlank = 2;
    if (words.size() + kMostBlank < columns_.count) {
      return false;
    }
    blank_ = columns_.count - words.size();
    row.out_of_place = time_in(words, columns_.out_of_place, blank_);
    row.in_place = time_in(words, columns_.in_place, blank_);
    return true;
  }

  // Reads a row with one blank half: some tests run only in place, or only out of place.
  bool read_one_half(std::string_view line, const std::vector<std::string_view>& words,
                     PrintedRow& row) const {
    constexpr std::size_t kBlankHalf = 24;  // in characters
    const std::size_t half = columns_.half();
    if (half == 0 || words.size() + half + blank_ != columns_.count) {
      return false;
    }
    const bool is_out_first = columns_.out_of_place.us < columns_.in_place.us;
    const bool is_second = widest_gap(line) >= kBlankHalf;
    const Half& there = is_second == is_out_first ? columns_.in_place : columns_.out_of_place;
    PrintedTime& time = is_second == is_out_first ? row.in_place : row.out_of_place;
    time = time_in(words, there, blank_ + (is_second ? half : 0));
    return true;
  }

  static PrintedTime time_in(const std::vector<std::string_view>& words, const Half& half,
                             std::size_t blank) {
    const auto at = [&](std::size_t column) {
      return column == kNoPlace || column < blank ? std::string_view{} : words[column - blank];
    };
    PrintedTime time{.us = number_of(at(half.us)),
                     .algbw = number_of(at(half.algbw)),
                     .busbw = number_of(at(half.busbw))};
    time.is_wrong = !at(half.wrong).empty() && is_wrong(at(half.wrong));
    return time;
  }

  std::string command_;  // test named by a command line since the last heading
  Columns columns_ = {};
  std::size_t blank_ = 0;  // columns that the table's rows leave out
  bool is_in_place_first_ = false;
};

std::optional<double> number_in(const JsonNode& object, std::string_view key) {
  const auto value = object.find(key);
  if (value && value->is(JsonValue::Kind::number)) {
    return value->number(-HUGE_VAL, HUGE_VAL);
  }
  return value && value->is(JsonValue::Kind::text)
             ? number_of(words_of(value->text()).empty() ? "" : words_of(value->text())[0])
             : std::nullopt;
}

std::string text_in(const JsonNode& object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(JsonValue::Kind::text) ? value->text() : std::string();
}

// nccl-tests writes "false" as a string; tools that copy its reports write the literal false.
bool is_false(const JsonNode& object, std::string_view key) {
  const auto value = object.find(key);
  return value && ((value->is(JsonValue::Kind::text) && value->text() == "false") ||
                   (value->is(JsonValue::Kind::truth) && !value->truth()));
}

PrintedTime time_in(const JsonNode& result, std::string_view key) {
  const auto half = result.find(key);
  if (!half || !half->is(JsonValue::Kind::object)) {
    return {};
  }
  PrintedTime time{.us = number_in(*half, "time"),
                   .algbw = number_in(*half, "alg_bw"),
                   .busbw = number_in(*half, "bus_bw")};
  time.is_wrong = !(number_in(*half, "nwrong").value_or(0) < 1);
  return time;
}

bool times_the_cpu(const JsonNode& result) {
  const auto half = result.find("in_place");
  return half && half->is(JsonValue::Kind::object) && half->find("cpu_time").has_value();
}

// Like NcclTests::kind_in().
std::string kind_in(const JsonNode& result) {
  std::string kind = text_in(result, "type");
  const std::string operation = text_in(result, "redop");
  return kind + (operation.empty() || operation == "none" ? "" : " " + operation) +
         root_text(number_in(result, "root"));
}

// Returns the heading of the whole run: the program's test, ranks and devices.
PrintedTable json_heading(const JsonNode& document) {
  PrintedTable table{.line = 1};
  if (const auto arguments = document.find("args"); arguments && arguments->size() > 0) {
    table.test = test_in(arguments->item(0).text());
  }
  const auto config = document.find("config");
  if (config) {
    const double ranks =
        number_in(*config, "nthreads").value_or(1) * number_in(*config, "ngpus").value_or(1);
    table.least_ranks = static_cast<int>(std::clamp(ranks, 0.0, 1e6));
  }
  const auto devices = document.find("devices");
  // Older versions list the devices inside the configuration.
  if (const auto listed = devices || !config ? devices : config->find("devices")) {
    for (std::size_t i = 0; i < listed->size(); ++i) {
      const JsonNode device = listed->item(i);
      ++table.ranks[static_cast<int>(std::clamp(number_in(device, "rank").value_or(0), 0.0, 1e6))];
      ++table
            .groups[static_cast<int>(std::clamp(number_in(device, "group").value_or(0), 0.0, 1e6))];
      if (const std::string name = text_in(device, "device_info"); !name.empty()) {
        table.devices.insert(name);
      }
    }
  }
  if (const auto bounds = document.find("out_of_bounds")) {
    table.is_failed = is_false(*bounds, "okay");
  }
  return table;
}

}  // namespace

std::unique_ptr<LogFormat> nccl_tests_format() {
  return std::make_unique<NcclTests>();
}

bool is_nccl_tests_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != kNoPlace && text[first] == '{' && text.find("\"results\"") != kNoPlace &&
         (text.find("\"out_of_place\"") != kNoPlace || text.find("\"nccl_version\"") != kNoPlace);
}

Parsed<std::vector<PrintedTable>> read_nccl_tests_json(std::string_view text) {
  constexpr std::array<std::string_view, 1> kLeftOut = {"env"};
  return parse_json_as<std::vector<PrintedTable>>(
      text,
      [](const JsonNode& document) {
        const PrintedTable heading = json_heading(document);
        std::vector<PrintedTable> tables;
        const JsonNode results = document.at("results");
        for (std::size_t i = 0; i < results.size(); ++i) {
          const JsonNode result = results.item(i);
          const std::string experiment = text_in(result, "experiment_name");
          const std::string& test = heading.test.empty() ? experiment : heading.test;
          if (tables.empty() || tables.back().test != test) {
            tables.push_back(heading);
            tables.back().test = test;
            tables.back().collective = collective_named_by_benchmark(test);
          }
          tables.back().rows.push_back({.line = 1,
                                        .bytes = number_in(result, "size").value_or(-1),
                                        .kind = kind_in(result),
                                        .out_of_place = time_in(result, "out_of_place"),
                                        .in_place = time_in(result, "in_place"),
                                        .flaw = times_the_cpu(result) ? kCpuTime : ""});
        }
        return tables;
      },
      kLeftOut);
}

}  // namespace unisono::network_model
