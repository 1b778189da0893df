// The results of `unisono tune`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes_text.h"
#include "plan/plan.h"
#include "plan/trials.h"
#include "tune/tune.h"

namespace unisono::cli {
namespace {

using cost::Choice;

struct Line {
  Collective collective;
  int ranks;
  std::string text;
};

// Returns a line for each collective and rank count: "one_shot, flat from 16 KiB".
template <typename Row>
std::vector<Line> lines_of(const std::vector<Row>& rows,
                           const std::function<std::string(const Row&)>& name) {
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const std::string text = name(row);
    if (text.empty()) {
      continue;  // far beyond the measurements
    }
    if (lines.empty() || lines.back().collective != row.collective ||
        lines.back().ranks != row.ranks) {
      lines.push_back({.collective = row.collective, .ranks = row.ranks, .text = text});
    } else {
      lines.back().text += fmt::format(", {} from {}", text, format_bytes(row.from_bytes));
    }
  }
  return lines;
}

void print_lines(const std::vector<Line>& lines, std::string_view heading, const Console& console) {
  fmt::print("{}\n", console.paint(Paint::strong, fmt::format("{:<14}  {:>5}  {}", "collective",
                                                              "ranks", heading)));
  const Line* before = nullptr;
  for (const Line& line : lines) {
    const bool repeats = before != nullptr && line.collective == before->collective;
    fmt::print("{:<14}  {:>5}  {}\n", repeats ? "" : to_string(line.collective), line.ranks,
               line.text);
    before = &line;
  }
}

// The largest size that was measured for each rank count: "2 ranks 64 MiB, 4 ranks 8 B".
std::string reach_of(const cost::Machine& machine) {
  std::map<int, double> largest;
  for (const cost::Point& point : machine.points()) {
    double& bytes = largest[point.ranks];
    bytes = std::max(bytes, point.bytes);
  }
  std::string text;
  for (const auto& [ranks, bytes] : largest) {
    text += fmt::format("{}{} rank{} {}", text.empty() ? "" : ", ", ranks, ranks == 1 ? "" : "s",
                        format_bytes(bytes));
  }
  return text;
}

void print_text(const TuneReport& report, const Console& console) {
  const cost::HostInfo& host = report.machine.host;
  fmt::print("{}", console.paint(Paint::strong, report.machine.name));
  if (host.cpus > 0) {
    fmt::print("  {} CPU{}{}{}", host.cpus, host.cpus == 1 ? "" : "s", host.cpu.empty() ? "" : ", ",
               host.cpu);
  }
  fmt::print("\n{} times", report.machine.machine.points().size());
  if (report.seconds > 0) {
    fmt::print(" measured in {}", time_text(report.seconds));
  }
  fmt::print("\n\n");
  const cost::Choices& choices = report.machine.choices;
  print_lines(lines_of<Choice>(choices.rows(), &Choice::algorithm), "algorithm", console);
  for (const cost::WaitChoice& row : choices.waits()) {
    const bool built_in = row.policy == built_in_wait(row.oversubscribed);
    fmt::print("{:<14}  {:>5}  {}{}\n", "waiting", row.ranks, to_text(row.policy),
               built_in ? ", as built in" : "");
  }
  if (!choices.threads().empty()) {
    fmt::print("\n");
    const auto count = [](const cost::ThreadChoice& row) { return fmt::format("{}", row.threads); };
    print_lines(lines_of<cost::ThreadChoice>(choices.threads(), count), "threads at most", console);
  }
  if (report.errors.count() > 0) {
    fmt::print("\ntest with every second size left out: median error {:.1f} %, p90 {:.1f} %\n",
               100 * report.errors.quantile(0.5), 100 * report.errors.quantile(0.9));
  }
  fmt::print("\nlargest sizes measured: {}; larger sizes are extrapolated\n",
             reach_of(report.machine.machine));
  fmt::print("predictions are the shortest times; the median time here is {:.2f}x as long\n",
             report.slower);
  // On an idle machine, repeated times differ by less than this factor.
  constexpr double kBusy = 1.25;
  if (report.slower > kBusy) {
    console.note(fmt::format(
        "warning: the machine was busy: programs will see times {:.0f} % longer than predicted",
        100 * (report.slower - 1)));
  }
  // If half of the predictions are this far off, the choices beyond are guesses.
  constexpr double kPoor = 0.5;
  if (report.errors.count() > 0 && report.errors.quantile(0.5) > kPoor) {
    console.note(
        "warning: the times do not fit; measure longer (--time), with nothing else running");
  }
  print_accounts(report.accounts);
  fmt::print("\nwritten to {}\n", report.path);
}

void print_json(const TuneReport& report) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.tune/1";
  json["file"] = report.path;
  json["name"] = report.machine.name;
  json["points"] = report.machine.machine.points().size();
  json["choices"] = nlohmann::json::array();
  for (const Choice& row : report.machine.choices.rows()) {
    json["choices"].push_back({{"collective", to_string(row.collective)},
                               {"ranks", row.ranks},
                               {"from_bytes", static_cast<std::uint64_t>(row.from_bytes)},
                               {"algorithm", row.algorithm}});
  }
  json["waits"] = nlohmann::json::array();
  for (const cost::WaitChoice& row : report.machine.choices.waits()) {
    json["waits"].push_back({{"ranks", row.ranks}, {"policy", to_text(row.policy)}});
  }
  json["threads"] = nlohmann::json::array();
  for (const cost::ThreadChoice& row : report.machine.choices.threads()) {
    json["threads"].push_back({{"collective", to_string(row.collective)},
                               {"ranks", row.ranks},
                               {"from_bytes", static_cast<std::uint64_t>(row.from_bytes)},
                               {"threads", row.threads}});
  }
  json["median_over_quickest"] = rounded(report.slower);
  json["errors"] = nullptr;
  if (report.errors.count() > 0) {
    json["errors"] = {{"points", report.errors.count()},
                      {"median", rounded(report.errors.quantile(0.5))},
                      {"p90", rounded(report.errors.quantile(0.9))}};
  }
  add_accounts(json, report.accounts);
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void print_report(const TuneReport& report, const Console& console) {
  if (console.json()) {
    print_json(report);
  } else {
    print_text(report, console);
  }
}

}  // namespace unisono::cli
