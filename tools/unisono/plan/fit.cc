// `unisono plan --fit`: machines fitted to tables of measured times, and how good the fits are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes_text.h"
#include "cli/account.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "network_model/fit_machine.h"
#include "network_model/holdout.h"
#include "network_model/table.h"
#include "plan/plan.h"
#include "plan/trials.h"

namespace unisono::cli {
namespace {

using cost::Point;
using cost::Trend;
using network_model::Table;

struct Report {
  cost::NamedMachine machine;
  std::vector<Trial> trials;
};

Report make_report(const Table& table, const std::string& name, const Table& unseen) {
  const std::vector<Point> points = table.points(name);
  Report report{.machine = {.name = name, .machine = network_model::fit_machine(points)},
                .trials = {}};
  const auto add = [&](std::string trial, network_model::Errors errors) {
    add_trial(report.trials, std::move(trial), std::move(errors));
  };
  add("every second size left out", network_model::hold_out_sizes(points));
  add("  plain alpha + bytes/beta", network_model::hold_out_sizes_of_plain_curve(points));
  add("each rank count left out", network_model::hold_out_ranks(points));
  add("each collective left out", network_model::hold_out_collectives(points));
  add("the table of --test", network_model::errors_of(report.machine.machine, unseen.points(name)));
  return report;
}

std::string rate(double s_per_byte) {
  return fmt::format("{:.3g} GB/s", 1e-9 / s_per_byte);
}

void print_factors(std::string_view what, const std::map<int, double>& factors) {
  std::vector<std::string> texts;
  for (const auto& [ranks, factor] : factors) {
    texts.push_back(fmt::format("{:.2f} as long among {}", factor, ranks));
  }
  if (!texts.empty()) {
    fmt::print("               {} take {} ranks\n", what, fmt::join(texts, ", "));
  }
}

void print_trend(const std::string& group, const Trend& trend) {
  fmt::print("  {:<12} starts in {}\n", group.empty() ? "fitted" : group, time_text(trend.floor_s));
  fmt::print("               pipelined    {} a message, {}, less than {} a rank is not faster\n",
             time_text(trend.alpha_s), rate(trend.beta_s_per_byte), format_bytes(trend.ramp_bytes));
  fmt::print("               direct       {} a message, {}\n", time_text(trend.direct_alpha_s),
             rate(trend.direct_beta_s_per_byte));
  print_factors("bytes", trend.byte_factors);
  print_factors("latencies", trend.latency_factors);
  if (trend.has_switch) {
    fmt::print("               in switch    {} a hop, {}\n", time_text(trend.switch_alpha_s),
               rate(trend.switch_beta_s_per_byte));
  }
}

void print_text(const Report& report, const Console& console) {
  const std::string& name = report.machine.name;
  fmt::print("{}  {}\n", console.paint(Paint::strong, name.empty() ? "machine" : name),
             rows_text(report.machine.machine.points()));
  for (const auto& [name_of_group, group] : report.machine.machine.groups()) {
    print_trend(name_of_group, group.trend);
  }
  print_trials(report.trials);
}

nlohmann::ordered_json report_json(const Report& report) {
  auto json = nlohmann::ordered_json::parse(cost::to_json(report.machine));
  json.erase("format");
  json.erase("points");
  for (auto& group : json["groups"]) {
    group.erase("residuals");
    for (auto& [name, value] : group["trend"].items()) {
      value = value.is_number() ? nlohmann::ordered_json(rounded(value.get<double>())) : value;
    }
  }
  json["rows"] = report.machine.machine.points().size();
  json["errors"] = trials_json(report.trials);
  return json;
}

void save(const std::vector<Report>& reports, const std::string& path) {
  if (reports.size() > 1) {
    std::vector<std::string_view> names;
    for (const Report& report : reports) {
      names.push_back(report.machine.name);
    }
    throw UsageError("--save takes one machine, and the table has several",
                     fmt::format("one of: {}", fmt::join(names, ", ")), "name one with --only");
  }
  write_output(path, cost::to_json(reports.front().machine));
}

}  // namespace

int run_fit(const Arguments& arguments, const Console& console) {
  const network_model::LogQuestion question = log_question_of(arguments);
  std::vector<Account> accounts;
  const Table table = load_table(arguments.text("fit"), question, accounts);
  const Table unseen =
      arguments.has("test") ? load_table(arguments.text("test"), question, accounts) : Table{};
  const std::vector<std::string> names = machines_of(table, arguments);
  leave_out_others(table, names, accounts.front());
  if (arguments.has("test")) {
    leave_out_others(unseen, names, accounts.back());
  }
  std::vector<Report> reports;
  for (const std::string& name : names) {
    console.progress(fmt::format("fitting {}", name));
    reports.push_back(make_report(table, name, unseen));
  }
  console.end_progress();
  if (arguments.has("save")) {
    save(reports, arguments.text("save"));
  }
  nlohmann::ordered_json json;
  json["schema"] = "unisono.fit/1";
  json["machines"] = nlohmann::json::array();
  for (const Report& report : reports) {
    if (console.json()) {
      json["machines"].push_back(report_json(report));
    } else {
      fmt::print("{}", &report == &reports.front() ? "" : "\n");
      print_text(report, console);
    }
  }
  add_accounts(json, accounts);
  if (console.json()) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print_accounts(accounts);
  }
  return kDone;
}

cost::NamedMachine load_machine(const std::string& path) {
  const std::string text = read_text_file(path);
  auto parsed = cost::parse_machine_json(text, network_model::fit_machine);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono plan --fit table.csv --save machine.json writes one");
  }
  return std::move(*parsed.value);
}

}  // namespace unisono::cli
