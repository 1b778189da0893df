// `unisono plan --fit TABLE --on TOPOLOGY`: fits a topology to measurements, for later use with
// --on.
#include "network_model/fit_on.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "plan/plan.h"
#include "plan/trials.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using cost::Point;
using network_model::Errors;
using network_model::FittedTopology;

struct FitReport {
  std::string machine;  // of the table
  std::vector<Point> points;
  FittedTopology fitted;
  std::vector<Trial> trials;
  std::vector<Account> accounts;
};

std::vector<Point> points_of(const Arguments& arguments, const std::string& path,
                             FitReport& report) {
  const network_model::Table table = load_table(path, log_question_of(arguments), report.accounts);
  std::string& machine = report.machine;
  if (machine.empty()) {
    const std::vector<std::string> names = machines_of(table, arguments);
    if (names.size() > 1) {
      throw UsageError("--on is one machine, and the table has several",
                       fmt::format("one of: {}", fmt::join(names, ", ")), "name one with --only");
    }
    machine = names.front();
  }
  leave_out_others(table, {machine}, report.accounts.back());
  return table.points(machine);
}

FitReport make_report(const Arguments& arguments, const Topology& topology,
                      const Console& console) {
  FitReport report;
  report.points = points_of(arguments, arguments.text("fit"), report);
  const std::vector<Point>& points = report.points;
  const auto begins = [&](int count) {
    console.progress(fmt::format("predicted {} times", count));
  };
  report.fitted = network_model::fit_on(points, topology, begins);
  const network_model::Predict predict = [&](const std::vector<Point>& seen,
                                             const std::vector<Point>& held) {
    return network_model::errors_on(network_model::fit_on(seen, topology, begins).topology, held);
  };
  add_trial(report.trials, "nothing fitted", network_model::errors_on(topology, points));
  add_trial(report.trials, "every second size left out",
            network_model::hold_out_sizes(points, predict));
  add_trial(report.trials, "each rank count left out",
            network_model::hold_out_ranks(points, predict));
  add_trial(report.trials, "each collective left out",
            network_model::hold_out_collectives(points, predict));
  if (arguments.has("test")) {
    const std::vector<Point> unseen = points_of(arguments, arguments.text("test"), report);
    add_trial(report.trials, "the table of --test",
              network_model::errors_on(report.fitted.topology, unseen));
  }
  console.end_progress();
  report.fitted.topology.source += fmt::format(
      "{}{}{} measurements{}: start x {:.3g}, message x {:.3g}, bandwidth in "
      "nodes x {:.3g}{}",
      report.fitted.topology.source.empty() ? "" : ". ", kFittedTo, points.size(),
      report.machine.empty() ? "" : " of " + report.machine, report.fitted.factors.start,
      report.fitted.factors.message, report.fitted.factors.near,
      report.fitted.has_far ? fmt::format(", between them x {:.3g}", report.fitted.factors.far)
                            : "");
  return report;
}

void print_text(const FitReport& report, const Console& console) {
  const network_model::Factors& factors = report.fitted.factors;
  fmt::print("{}  {}\n", console.paint(Paint::strong, report.fitted.topology.name),
             rows_text(report.points));
  fmt::print("  starting an operation    {:.2f} times as long\n", factors.start);
  fmt::print("  a message                {:.2f} times as long\n", factors.message);
  fmt::print("  links inside a node      {:.2f} times as fast\n", factors.near);
  fmt::print("  links between nodes      {}\n",
             report.fitted.has_far ? fmt::format("{:.2f} times as fast", factors.far)
                                   : "as they were: nothing was measured on several nodes");
  print_trials(report.trials);
  print_accounts(report.accounts);
}

void print_json(const FitReport& report) {
  const network_model::Factors& factors = report.fitted.factors;
  nlohmann::ordered_json json;
  json["schema"] = "unisono.fit_on/1";
  json["topology"] = report.fitted.topology.name;
  json["machine"] = report.machine;
  json["rows"] = report.points.size();
  json["factors"] = {{"start", rounded(factors.start)},
                     {"message", rounded(factors.message)},
                     {"near", rounded(factors.near)},
                     {"far", rounded(factors.far)}};
  json["has_far"] = report.fitted.has_far;
  json["errors"] = trials_json(report.trials);
  add_accounts(json, report.accounts);
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int run_fit_on(const Arguments& arguments, const Console& console) {
  const Topology topology = load_topology(arguments.text("on"));
  try {
    const FitReport report = make_report(arguments, topology, console);
    if (arguments.has("save")) {
      write_output(arguments.text("save"), to_json(report.fitted.topology));
    }
    if (console.json()) {
      print_json(report);
    } else {
      print_text(report, console);
    }
  } catch (const Error& error) {
    throw UsageError(std::string(error.message()), {}, "unisono topo shows what a topology has");
  }
  return kDone;
}

}  // namespace unisono::cli
