#include "trace/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rank_list.h"
#include "cli/account.h"
#include "cli/failure.h"
#include "plan/plan.h"
#include "record/files.h"
#include "record/what_if.h"
#include "trace/dumps.h"

namespace unisono::cli {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kWorthNaming = 0.01;  // part of the time

// "rank=3" -> "3"
std::string given_for(std::string_view given, std::string_view option, std::string_view key) {
  if (!given.starts_with(key) || given.size() < key.size() + 2 || given[key.size()] != '=') {
    throw UsageError(fmt::format("--{} takes {}=..., not '{}'", option, key, given),
                     "--without rank=3, --faster compute=1.2, --with link=2", "unisono help trace");
  }
  return std::string(given.substr(key.size() + 1));
}

double factor_of(std::string_view given, std::string_view option, std::string_view key) {
  const std::string text = given_for(given, option, key);
  std::size_t end = 0;
  double factor = 0;
  try {
    factor = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || !std::isfinite(factor) || factor <= 0) {
    throw UsageError(fmt::format("--{} {}={}: not a number above 0", option, key, text),
                     "2 is twice as fast, 0.5 half as fast", "unisono help trace");
  }
  return factor;
}

Change change_of(const Arguments& arguments, int ranks) {
  Change change;
  if (arguments.has("without")) {
    change.without =
        parse_ranks(given_for(arguments.text("without"), "without", "rank"), ranks, "without");
  }
  if (arguments.has("with")) {
    change.link = factor_of(arguments.text("with"), "with", "link");
  }
  if (arguments.has("faster")) {
    const std::string given = arguments.text("faster");
    const std::size_t comma = std::min(given.find(','), given.size());
    change.compute = factor_of(given.substr(0, comma), "faster", "compute");
    if (comma < given.size()) {
      change.faster =
          parse_ranks(given_for(given.substr(comma + 1), "faster", "rank"), ranks, "faster");
    }
  }
  return change;
}

bool is_asked(const Arguments& arguments) {
  return arguments.has("without") || arguments.has("with") || arguments.has("faster");
}

JobCalls calls_of(const std::vector<std::string>& paths, Account& account) {
  if (are_dumps(paths)) {
    auto [ranks, read] = read_dumps(paths);
    account = std::move(read);
    return job_calls_of(ranks);
  }
  if (paths.size() > 1) {
    throw UsageError(
        "trace whatif takes one recording, or the files of another program from all ranks", {},
        "unisono help trace");
  }
  account = {.source = "the recording", .unit = "call"};
  const nlohmann::ordered_json trace = read_trace(paths.front());
  try {
    JobCalls job = job_calls_of(trace);
    add_transfers(trace, job);
    for (const auto& doubt : trace.value("clock_uncertainty_us", nlohmann::ordered_json::array())) {
      if (doubt.is_null()) {
        account.assume("the clocks of all ranks agree, although some could not be compared");
      }
    }
    return job;
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

struct Outcome {
  std::string what = {};
  double us = 0;
};

std::string share_text(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

std::string span_text(double us) {
  return time_text(us * 1e-6);
}

// Returns the change in words that follow "with".
std::string change_text(const Change& change) {
  std::vector<std::string> parts;
  if (!change.without.empty()) {
    parts.push_back(fmt::format("{} as fast as the others", ranks_text(change.without)));
  }
  if (change.compute != 1) {
    parts.push_back(fmt::format("computing{} {:g}x as fast",
                                change.faster.empty() ? "" : " of " + ranks_text(change.faster),
                                change.compute));
  }
  if (change.link != 1) {
    parts.push_back(fmt::format("links {:g}x as fast", change.link));
  }
  return parts.empty() ? "nothing changed" : fmt::format("{}", fmt::join(parts, ", "));
}

// "42.0 ms instead of 50.0 ms, 16.0 % less"
std::string instead_text(double us, double unchanged_us) {
  const double saved = 1 - us / unchanged_us;
  return fmt::format("{} instead of {}, {} {}", span_text(us), span_text(unchanged_us),
                     share_text(std::abs(saved)), saved < 0 ? "more" : "less");
}

// The parts of the time that the slowest ranks, the slowest link and communication cost.
std::vector<Outcome> costs_of(const WhatIf& simulation, const JobCalls& job) {
  std::vector<Outcome> rows;
  if (const std::vector<int> ranks = simulation.stragglers();
      !ranks.empty() && simulation.can_replace(ranks)) {
    const Change change{.without = ranks};
    rows.push_back({.what = change_text(change), .us = simulation.run(change)});
  }
  if (const SlowLink link = simulation.slow_link(); link.group >= 0) {
    rows.push_back({.what = fmt::format("links of {} as fast as others",
                                        job.groups[static_cast<std::size_t>(link.group)].name),
                    .us = simulation.run({.link = link.ratio, .group = link.group})});
  }
  rows.push_back({.what = "communication in no time", .us = simulation.run({.link = kInfinite})});
  return rows;
}

std::string sentence_of(const std::vector<Outcome>& costs, double unchanged_us) {
  const Outcome& most = *std::ranges::min_element(costs, {}, &Outcome::us);
  return 1 - most.us / unchanged_us < kWorthNaming
             ? "no rank, link or exposed communication costs 1 % of the time"
             : fmt::format("with {}: {}", most.what, instead_text(most.us, unchanged_us));
}

void print_outcomes(const std::vector<Outcome>& rows, double unchanged_us, const Console& console) {
  fmt::print("{}\n", console.paint(Paint::dim, fmt::format("{:<48}  {:>12}  {:>8}", "change",
                                                           "time", "saves")));
  fmt::print("{:<48}  {:>12}\n", "none", span_text(unchanged_us));
  for (const Outcome& row : rows) {
    constexpr std::size_t kWidth = 48;
    const std::string what =
        row.what.size() <= kWidth ? row.what : row.what.substr(0, kWidth - 3) + "...";
    fmt::print("{:<48}  {:>12}  {:>8}\n", what, span_text(row.us),
               share_text(1 - row.us / unchanged_us));
  }
}

nlohmann::ordered_json rows_json(const std::vector<Outcome>& rows, double unchanged_us) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Outcome& row : rows) {
    list.push_back({{"change", row.what}, {"us", row.us}, {"saves", 1 - row.us / unchanged_us}});
  }
  return list;
}

}  // namespace

int run_what_if(const Arguments& arguments, const Console& console) {
  const std::vector<std::string> paths(arguments.operands().begin() + 1,
                                       arguments.operands().end());
  if (paths.empty()) {
    throw UsageError("trace whatif what?", "unisono trace whatif FILE --without rank=3",
                     "unisono help trace");
  }
  Account account;
  const JobCalls job = calls_of(paths, account);
  const Change change = change_of(arguments, job.ranks);
  const WhatIf simulation(job, account);
  if (arguments.has("with")) {
    account.assume(simulation.has_latencies()
                       ? "a faster link moves bytes faster; the latency fitted to each kind of "
                         "operation stays"
                       : "a faster link shortens all of an operation: its latency is not known, as "
                         "each kind has one size only");
  }
  const double unchanged_us = simulation.run({});
  if (unchanged_us <= 0) {
    throw UsageError("the recorded calls take no time", "there is nothing to save",
                     "unisono help trace");
  }
  std::vector<Outcome> rows;
  if (is_asked(arguments)) {
    rows.push_back({.what = change_text(change), .us = simulation.run(change)});
  }
  std::vector<Outcome> costs = costs_of(simulation, job);
  const std::string verdict = is_asked(arguments)
                                  ? fmt::format("with {}: {}", rows.front().what,
                                                instead_text(rows.front().us, unchanged_us))
                                  : sentence_of(costs, unchanged_us);
  if (!rows.empty()) {
    std::erase_if(costs, [&rows](const Outcome& one) { return one.what == rows.front().what; });
  }
  rows.insert(rows.end(), costs.begin(), costs.end());
  if (console.json()) {
    const nlohmann::ordered_json result{{"schema", "unisono.whatif/1"},
                                        {"verdict", verdict},
                                        {"recorded_us", simulation.recorded_us()},
                                        {"unchanged_us", unchanged_us},
                                        {"changes", rows_json(rows, unchanged_us)},
                                        {"account", account_json(account)}};
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kDone;
  }
  fmt::print("{}\n", console.paint(Paint::strong, verdict));
  print_outcomes(rows, unchanged_us, console);
  console.note(fmt::format("recorded: {}; simulated without a change: {}",
                           span_text(simulation.recorded_us()), span_text(unchanged_us)));
  note_account(account, console);
  return kDone;
}

}  // namespace unisono::cli
