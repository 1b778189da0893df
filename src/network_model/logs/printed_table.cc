#include "network_model/logs/printed_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "unisono/types.hpp"

namespace unisono::network_model {
namespace {

constexpr int kMostLogRanks = 1'000'000;

// Bandwidths have two decimals, and times four or five digits.
constexpr double kHalfDigit = 0.0051;
constexpr double kBandwidthRounding = 0.002;

std::string count_text(int ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
  return {text.data(), end.ptr};
}

// Returns busbw / algbw as in nccl-tests; for UCC's part counts, busbw / (size / time).
double bus_factor(Collective collective, int ranks, bool is_of_part) {
  const double part = (ranks - 1.0) / ranks;
  const double all = is_of_part ? ranks : 1.0;
  switch (collective) {
    case Collective::all_reduce:
      return is_of_part ? part * all : 2 * part;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return part * all;
    default:
      return 1;
  }
}

// Returns the rank count with this factor; 0 if there is none, or if every count has it.
int ranks_of_factor(Collective collective, double factor, bool is_of_part) {
  const bool is_reduce = collective == Collective::all_reduce;
  const double ranks = is_of_part ? factor + 1 : is_reduce ? 2 / (2 - factor) : 1 / (1 - factor);
  return ranks >= 0.5 && ranks < kMostLogRanks ? static_cast<int>(std::lround(ranks)) : 0;
}

bool has_bandwidths(const PrintedTime& time) {
  return time.algbw && time.busbw && *time.algbw > 0;
}

// Determines the number of ranks from the bandwidths of one table.
class Bandwidths {
 public:
  Bandwidths(Collective collective, const PrintedTable& table)
      : collective_(collective), is_of_part_(table.is_bandwidth_of_part) {
    for (const PrintedRow& row : table.rows) {
      for (const PrintedTime* time : {&row.out_of_place, &row.in_place}) {
        if (has_bandwidths(*time)) {
          times_.push_back(time);
        }
      }
    }
  }
  bool can_tell() const {
    return !times_.empty() &&
           bus_factor(collective_, 2, false) != bus_factor(collective_, 3, false);
  }
  bool agree(int ranks) const {
    const double factor = bus_factor(collective_, ranks, is_of_part_);
    return std::ranges::all_of(times_, [factor](const PrintedTime* time) {
      const double most_off = kHalfDigit * (1 + factor) + kBandwidthRounding * *time->busbw;
      return std::abs(*time->busbw - factor * *time->algbw) <= most_off;
    });
  }
  // Returns the only rank count that agrees with all bandwidths; 0 if there is none, or several.
  int ranks() const {
    if (!can_tell()) {
      return 0;
    }
    const int count = ranks_of_factor(collective_, ratio(), is_of_part_);
    const bool is_only =
        count > 0 && agree(count) && !agree(count + 1) && (count == 1 || !agree(count - 1));
    return is_only ? count : 0;
  }
  bool is_of_any_count() const {
    const int count = ranks_of_factor(collective_, ratio(), is_of_part_);
    return count > 0 && agree(count);
  }
  // Returns the ratio at the largest bandwidth, which is the most precise.
  double ratio() const {
    const PrintedTime* best = times_.front();
    for (const PrintedTime* time : times_) {
      best = *time->algbw > *best->algbw ? time : best;
    }
    return *best->busbw / *best->algbw;
  }

 private:
  Collective collective_;
  bool is_of_part_;
  std::vector<const PrintedTime*> times_;
};

struct RankCount {
  int ranks = 0;
  std::string assumed = {};
  std::string problem = {};
};

// The contents of the list of ranks.
struct Listed {
  explicit Listed(const PrintedTable& table) : all(static_cast<int>(table.ranks.size())) {
    for (const auto& [rank, times] : table.ranks) {
      most_times = std::max(most_times, times);
    }
    is_whole = all > 0 && table.ranks.begin()->first == 0 &&
               table.ranks.rbegin()->first == all - 1 && all >= table.least_ranks;
    const bool are_alike = std::ranges::all_of(table.groups, [&](const auto& group) {
      return group.second == table.groups.begin()->second;
    });
    groups = static_cast<int>(table.groups.size());
    // Ranks that are listed several times belong to several jobs.
    of_group = groups > 1 && are_alike && most_times == 1 ? all / groups : 0;
  }

  int all = 0;
  int most_times = 0;
  int groups = 0;
  int of_group = 0;  // 0: one group, or groups of different size
  bool is_whole = false;
};

RankCount count_ranks(const PrintedTable& table, Collective collective,
                      const LogQuestion& question) {
  const Bandwidths bandwidths(collective, table);
  const Listed listed(table);
  const bool can_tell = bandwidths.can_tell();
  const int told = bandwidths.ranks();
  const auto contradiction = [&](int ranks, const std::string& who) {
    return RankCount{.problem = who + " " + count_text(ranks) + ", but busbw / algbw is " +
                                short_number(bandwidths.ratio()) +
                                (told > 0 ? ", which means " + count_text(told)
                                          : ", and should be " + short_number(bus_factor(
                                                                     collective, ranks,
                                                                     table.is_bandwidth_of_part)))};
  };
  const int said = table.ranks_said > 0 ? table.ranks_said : listed.all == 0 ? question.ranks : 0;
  if (said > 0 && can_tell && !bandwidths.agree(said) && !table.is_bandwidth_loose) {
    return contradiction(said, table.ranks_said > 0 ? "the log says" : "-n says");
  }
  if (said > 0) {
    return {.ranks = said,
            .assumed = table.ranks_said > 0 ? "" : count_text(said) + ", as -n says"};
  }
  if (listed.of_group > 0 && (!can_tell || bandwidths.agree(listed.of_group))) {
    return {.ranks = listed.of_group,
            .assumed = count_text(listed.of_group) + ", the size of each of " +
                       std::to_string(listed.groups) + " groups; " + std::to_string(listed.all) +
                       " are listed"};
  }
  if (listed.is_whole && listed.groups <= 1 && (!can_tell || bandwidths.agree(listed.all))) {
    return {.ranks = listed.all};
  }
  if (told > 0 && !(listed.is_whole && listed.groups <= 1)) {
    return {.ranks = told,
            .assumed = count_text(told) + ", as busbw / algbw says; " +
                       (listed.all == 0 ? "none are listed"
                                        : std::to_string(listed.all) + " are listed" +
                                              (listed.is_whole ? " in groups" : ", but not all"))};
  }
  if (listed.all > 0 && can_tell) {
    return contradiction(listed.all, "the log lists");
  }
  if (can_tell && told == 0 && !bandwidths.is_of_any_count()) {
    return {.problem = "the log does not say how many ranks there were, and its bandwidths are " +
                       short_number(bandwidths.ratio()) +
                       " times size / time, which fits no number of ranks: add -n RANKS"};
  }
  return {.problem = listed.all > 0 ? "the list of ranks is incomplete, and the bandwidths do not "
                                      "show how many ranks there were: add -n RANKS"
                                    : "the log does not say how many ranks there were: add -n "
                                      "RANKS"};
}

bool is_time(const std::optional<double>& us) {
  return us && *us >= cost::kLeastPointUs && *us <= cost::kMostPointUs;
}

// Returns true if size, time and bandwidth can belong to one measurement.
bool agrees(const PrintedTime& time, double bytes) {
  constexpr double kBytesPerUs = 1e3;  // at 1 GB/s
  if (!time.us || !time.algbw || *time.us <= 0) {
    return true;
  }
  const double rate = bytes / *time.us / kBytesPerUs;
  return std::abs(rate - *time.algbw) <= 2 * kHalfDigit + 0.02 * rate;
}

std::string flaw_of(const PrintedRow& row) {
  if (!row.flaw.empty()) {
    return row.flaw;
  }
  if (row.bytes == 0) {
    return "of 0 bytes, which move nothing";
  }
  if (row.bytes < 0 || row.bytes > cost::kMostPointBytes) {
    return "with an impossible size";
  }
  if (row.out_of_place.is_wrong || row.in_place.is_wrong) {
    return "with wrong results (#wrong)";
  }
  if (!is_time(row.out_of_place.us) && !is_time(row.in_place.us)) {
    return "without a time";
  }
  return agrees(row.out_of_place, row.bytes) && agrees(row.in_place, row.bytes)
             ? ""
             : "whose size, time and algbw contradict each other";
}

class Collector {
 public:
  explicit Collector(const LogQuestion& question) : question_(question) {}

  // Returns the problem; empty if there is none.
  std::string add(const PrintedTable& table) {
    const auto rows = static_cast<std::int64_t>(table.rows.size());
    if (table.rows.empty()) {
      return {};
    }
    if (!table.test.empty() && !table.collective) {
      log_.account.leave_out(rows, "of " + table.test + ", which tests no collective of unisono");
      return {};
    }
    if (table.test.empty() && !question_.collective) {
      return "the log does not say which collective was tested: name it, as in plan all_reduce "
             "--fit";
    }
    const Collective collective = table.test.empty() ? *question_.collective : *table.collective;
    if (question_.collective && collective != *question_.collective) {
      log_.account.leave_out(rows, "of " + table.test + ", and only " +
                                       std::string(to_string(*question_.collective)) +
                                       " was requested");
      return {};
    }
    if (table.test.empty()) {
      log_.account.assume("tests without a name are of " + std::string(to_string(collective)) +
                          ", as the command line says");
    }
    return add_rows(table, collective);
  }

  BenchmarkLog take() {
    for (const auto& [collective, kinds] : kinds_) {
      if (kinds.size() > 1) {
        log_.account.assume(std::string(to_string(collective)) + " of " + listed(kinds) +
                            " takes the same time");
      }
    }
    return std::move(log_);
  }

 private:
  // Returns "float sum, half max and 3 others".
  static std::string listed(const std::set<std::string>& kinds) {
    constexpr std::size_t kMostNamed = 4;
    std::string text;
    std::size_t named = 0;
    for (const std::string& kind : kinds) {
      if (named == kMostNamed) {
        break;
      }
      text += (named == 0 ? "" : named + 1 == kinds.size() ? " and " : ", ") + kind;
      ++named;
    }
    return text + (kinds.size() > named
                       ? " and " + std::to_string(kinds.size() - named) + " other kinds"
                       : "");
  }

  std::string add_rows(const PrintedTable& table, Collective collective) {
    std::vector<const PrintedRow*> good;
    bool has_wrong = false;
    for (const PrintedRow& row : table.rows) {
      has_wrong = has_wrong || row.out_of_place.is_wrong || row.in_place.is_wrong;
      const std::string flaw = flaw_of(row);
      log_.account.leave_out(flaw.empty() ? 0 : 1, flaw);
      if (flaw.empty()) {
        good.push_back(&row);
      }
    }
    const auto rows = static_cast<std::int64_t>(good.size());
    if (rows == 0) {
      return {};
    }
    if (table.is_failed.value_or(false) && !has_wrong) {
      log_.account.leave_out(rows, "of a failed test that does not say at which sizes it failed");
      return {};
    }
    const RankCount count = count_ranks(table, collective, question_);
    if (!count.problem.empty()) {
      return count.problem;
    }
    if (count.ranks == 1 && collective != Collective::barrier) {
      log_.account.leave_out(
          rows,
          "of 1 rank, which does not communicate (builds without MPI run one test per process)");
      return {};
    }
    if (!count.assumed.empty()) {
      log_.account.assume(count.assumed);
    }
    for (const PrintedRow* row : good) {
      add_row(*row, table, collective, count.ranks);
    }
    return {};
  }

  void add_row(const PrintedRow& row, const PrintedTable& table, Collective collective, int ranks) {
    std::string device;
    for (const std::string& one : table.devices) {
      device += (device.empty() ? "" : ", ") + one;
    }
    const double us = is_time(row.out_of_place.us) ? *row.out_of_place.us : *row.in_place.us;
    constexpr double kSecondsPerUs = 1e-6;
    ++log_.account.used;
    if (!row.kind.empty()) {
      kinds_[collective].insert(row.kind);
    }
    log_.table.rows.push_back(
        {.machine = device.empty() ? "" : device + " x " + std::to_string(ranks),
         .point = {.collective = collective,
                   .ranks = ranks,
                   .bytes = std::min(row.bytes * (table.is_size_of_part ? ranks : 1),
                                     cost::kMostPointBytes),
                   .time_s = us * kSecondsPerUs}});
  }

  LogQuestion question_;
  BenchmarkLog log_;
  std::map<Collective, std::set<std::string>> kinds_;  // of the used rows
};

}  // namespace

Parsed<BenchmarkLog> points_of(const std::string& source, const std::vector<PrintedTable>& tables,
                               const LogQuestion& question) {
  Collector collector(question);
  std::size_t line = 1;
  for (const PrintedTable& table : tables) {
    line = table.rows.empty() ? table.line : table.rows.front().line;
    std::string problem = collector.add(table);
    if (!problem.empty()) {
      return Parsed<BenchmarkLog>::failure(source + ": " + problem, "line " + std::to_string(line));
    }
  }
  BenchmarkLog log = collector.take();
  log.account.source = source;
  log.account.unit = "row";
  if (log.table.rows.empty()) {
    std::string message = log.account.left_out.empty() ? source + ": there are no measurements"
                                                       : source + ": no row can be used";
    for (const Account::LeftOut& one : log.account.left_out) {
      message += "\n" + std::to_string(one.count) + (one.count == 1 ? " row " : " rows ") + one.why;
    }
    return Parsed<BenchmarkLog>::failure(message, "line " + std::to_string(line));
  }
  return Parsed<BenchmarkLog>::success(std::move(log));
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    return std::strtod(std::string(word).c_str(), nullptr);  // infinity or 0
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace unisono::network_model
