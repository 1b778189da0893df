// `unisono plan --fit`: machines fitted to tables of measured times, and how good the fits are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "model/holdout.h"
#include "model/nccl_log.h"
#include "model/table.h"
#include "plan/plan.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

using model::Errors;
using model::Point;
using model::Table;
using model::Trend;

// One way of testing a fit.
struct Trial {
  std::string name;
  Errors errors;
};

struct Report {
  model::NamedMachine machine;
  std::vector<Trial> trials;
};

// A table, or what nccl-tests printed: `collective` is that of a log that does not say it.
Table load_table(const std::string& path, std::optional<Collective> collective) {
  const std::string text = read_text_file(path);
  const bool is_log = model::is_nccl_log(text);
  auto parsed = is_log ? model::parse_nccl_log(text, collective) : model::parse_table(text);
  if (!parsed) {
    throw UsageError(
        fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message), {},
        is_log ? fmt::format("unisono plan all_reduce --fit {} names the collective", path)
               : "unisono help plan says which columns a table has");
  }
  if (!is_log && collective) {
    throw UsageError("a table says itself which collectives were measured, so name none", {},
                     "save the machine with --save, and ask it with --machine");
  }
  return std::move(*parsed.value);
}

Report make_report(const Table& table, const std::string& name, const Table& unseen) {
  const std::vector<Point> points = table.points(name);
  Report report{.machine = {.name = name, .machine = model::Machine::fit(points)}, .trials = {}};
  const auto add = [&](std::string trial, Errors errors) {
    if (errors.count() > 0) {
      report.trials.push_back({.name = std::move(trial), .errors = std::move(errors)});
    }
  };
  add("every second size left out", model::hold_out_sizes(points));
  add("  plain alpha + bytes/beta", model::hold_out_sizes_of_plain_curve(points));
  add("each rank count left out", model::hold_out_ranks(points));
  add("each collective left out", model::hold_out_collectives(points));
  add("the table of --test", model::errors_of(report.machine.machine, unseen.points(name)));
  return report;
}

std::string names_of(const std::vector<Point>& points) {
  std::set<Collective> collectives;
  std::set<int> ranks;
  double least = points.front().bytes;
  double most = least;
  for (const Point& point : points) {
    collectives.insert(point.collective);
    ranks.insert(point.ranks);
    least = std::min(least, point.bytes);
    most = std::max(most, point.bytes);
  }
  std::vector<std::string_view> names;
  for (const Collective collective : collectives) {
    names.push_back(to_string(collective));
  }
  return fmt::format("{} row{}: {}, {} ranks, {} to {}", points.size(),
                     points.size() == 1 ? "" : "s", fmt::join(names, ", "), fmt::join(ranks, " "),
                     size_text(least), size_text(most));
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
             time_text(trend.alpha_s), rate(trend.beta_s_per_byte), size_text(trend.ramp_bytes));
  fmt::print("               direct       {} a message, {}\n", time_text(trend.direct_alpha_s),
             rate(trend.direct_beta_s_per_byte));
  print_factors("bytes", trend.byte_factors);
  print_factors("latencies", trend.latency_factors);
  if (trend.has_switch) {
    fmt::print("               in switch    {} a hop, {}\n", time_text(trend.switch_alpha_s),
               rate(trend.switch_beta_s_per_byte));
  }
}

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

void print_text(const Report& report, const Console& console) {
  const std::string& name = report.machine.name;
  fmt::print("{}  {}\n", console.paint(Paint::strong, name.empty() ? "machine" : name),
             names_of(report.machine.machine.points()));
  for (const auto& [name_of_group, group] : report.machine.machine.groups()) {
    print_trend(name_of_group, group.trend);
  }
  fmt::print("  {:<28} {:>6}  {:>7}  {:>7}  worst\n", "error on rows not seen", "rows", "median",
             "p90");
  for (const Trial& trial : report.trials) {
    const std::size_t worst = trial.errors.worst();
    const Point& point = trial.errors.points[worst];
    fmt::print("  {:<28} {:>6}  {:>7}  {:>7}  {:+.1f} % at {}, {} ranks, {}\n", trial.name,
               trial.errors.count(), percent(trial.errors.quantile(0.5)),
               percent(trial.errors.quantile(0.9)), 100 * trial.errors.values[worst],
               to_string(point.collective), point.ranks, size_text(point.bytes));
  }
  if (report.trials.empty()) {
    fmt::print("  too few rows to leave any out\n");
  }
}

nlohmann::ordered_json report_json(const Report& report) {
  auto json = nlohmann::ordered_json::parse(model::to_json(report.machine));
  json.erase("format");
  json.erase("points");
  for (auto& group : json["groups"]) {
    group.erase("residuals");
    for (auto& [name, value] : group["trend"].items()) {
      value = value.is_number() ? nlohmann::ordered_json(rounded(value.get<double>())) : value;
    }
  }
  json["rows"] = report.machine.machine.points().size();
  json["errors"] = nlohmann::json::array();
  for (const Trial& trial : report.trials) {
    const std::size_t first = trial.name.find_first_not_of(' ');
    json["errors"].push_back({{"left_out", trial.name.substr(first)},
                              {"rows", trial.errors.count()},
                              {"median", rounded(trial.errors.quantile(0.5))},
                              {"p90", rounded(trial.errors.quantile(0.9))},
                              {"worst", rounded(trial.errors.values[trial.errors.worst()])}});
  }
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
  write_output(path, model::to_json(reports.front().machine));
}

}  // namespace

int run_fit(const Arguments& arguments, const Console& console) {
  std::optional<Collective> collective;
  if (!arguments.operands().empty()) {
    collective = collective_of(arguments.operands().front());
  }
  const Table table = load_table(arguments.text("fit"), collective);
  const Table unseen =
      arguments.has("test") ? load_table(arguments.text("test"), collective) : Table{};
  std::vector<std::string> names = table.machines();
  if (arguments.has("only")) {
    const std::string only = arguments.text("only");
    if (std::find(names.begin(), names.end(), only) == names.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      throw UsageError(fmt::format("the table has no machine '{}'", only),
                       fmt::format("one of: {}", fmt::join(views, ", ")));
    }
    names = {only};
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
  if (console.json()) {
    fmt::print("{}\n", json.dump(2));
  }
  return kDone;
}

model::NamedMachine load_machine(const std::string& path) {
  const std::string text = read_text_file(path);
  auto parsed = model::parse_machine_json(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono plan --fit table.csv --save machine.json writes one");
  }
  return std::move(*parsed.value);
}

}  // namespace unisono::cli
