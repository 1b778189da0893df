// `unisono plan moe --fit`: predicts the time of dispatch and combine on the machines of a table of
// measurements.
#include "network_model/expert_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/quantile.h"
#include "cli/failure.h"
#include "cli/text_file.h"
#include "plan/plan.h"
#include "plan/trials.h"

namespace unisono::cli {
namespace {

using network_model::ExpertFit;
using network_model::ExpertPoint;
constexpr double kHalf = 0.5;
constexpr double kNinety = 0.9;
constexpr std::int64_t kMostHosts = 4096;
constexpr std::int64_t kMostProcessors = 1'000'000;

struct ModeFit {
  std::string name;
  std::vector<ExpertPoint> asked = {};  // by machine, with the times of the fit
  std::size_t rows = 0;
  // The errors of the fit to every second row on the other rows; empty: there are none.
  std::vector<double> errors = {};
};

void predict(std::vector<ExpertPoint>& points, const std::vector<ExpertPoint>& known) {
  const ExpertFit dispatch(known, ExpertFit::Call::dispatch);
  const ExpertFit combine(known, ExpertFit::Call::combine);
  for (ExpertPoint& point : points) {
    point.dispatch_us = dispatch.us(point);
    point.combine_us = combine.us(point);
  }
}

// Returns the errors of every second row of a machine against a fit to the others.
std::vector<double> errors_of(const std::vector<ExpertPoint>& points) {
  std::vector<ExpertPoint> known;
  std::vector<ExpertPoint> unseen;
  std::map<std::string, int> counts;
  for (const ExpertPoint& point : points) {
    (counts[point.machine]++ % 2 == 0 ? known : unseen).push_back(point);
  }
  if (unseen.empty()) {
    return {};
  }
  std::vector<ExpertPoint> predicted = unseen;
  predict(predicted, known);
  std::vector<double> errors;
  for (std::size_t i = 0; i < unseen.size(); ++i) {
    errors.push_back(std::abs(predicted[i].dispatch_us / unseen[i].dispatch_us - 1));
    errors.push_back(std::abs(predicted[i].combine_us / unseen[i].combine_us - 1));
  }
  return errors;
}

// The question for each machine; 0: the fewest hosts that the machine was measured on, and the most
// processors.
struct Asked {
  network_model::ExpertShape shape = {};
  int hosts = 0;
  int processors = 0;  // of the normal mode
};

// Each host has as many ranks as the machine's fullest host.
std::vector<ExpertPoint> asked_of(const std::vector<ExpertPoint>& points, const Asked& asked) {
  std::map<std::string, ExpertPoint> machines;
  std::map<std::string, int> ranks_a_host;
  for (const ExpertPoint& point : points) {
    ExpertPoint& known = machines.try_emplace(point.machine, point).first->second;
    known.hosts = std::min(known.hosts, point.hosts);
    known.processors = std::max(known.processors, point.processors);
    int& ranks = ranks_a_host[point.machine];
    ranks = std::max(ranks, point.ranks / point.hosts);
  }
  std::vector<ExpertPoint> all;
  for (auto& [machine, point] : machines) {
    point.shape = asked.shape;
    point.hosts = asked.hosts > 0 ? asked.hosts : point.hosts;
    point.ranks = point.hosts * ranks_a_host[machine];
    if (asked.processors > 0 && point.mode == network_model::ExpertMode::normal) {
      point.processors = asked.processors;
    }
    all.push_back(std::move(point));
  }
  return all;
}

ModeFit fit_mode(const std::vector<ExpertPoint>& points, std::string name, const Asked& asked) {
  ModeFit made{.name = std::move(name), .asked = asked_of(points, asked), .rows = points.size()};
  predict(made.asked, points);
  made.errors = errors_of(points);
  return made;
}

// Requires a measurement with several hosts, which shows the cost of leaving a host.
void check_hosts(const std::vector<ExpertPoint>& points, int hosts, const std::string& path,
                 std::string_view mode) {
  const auto is_alone = [](const ExpertPoint& point) { return point.hosts == 1; };
  if (hosts > 1 && std::all_of(points.begin(), points.end(), is_alone)) {
    throw UsageError(
        fmt::format("{} has no {} rows of several hosts, and --hosts asks for {}", path, mode,
                    hosts),
        "add rows that were measured between hosts, or leave the mode out of the table",
        "unisono help plan");
  }
}

void print_text(const std::vector<ModeFit>& fits, const network_model::ExpertShape& shape,
                const Account& account, const Console& console) {
  fmt::print("moe  {} each, hidden {}, {} of {} experts\n\n", tokens_text(shape.tokens),
             shape.hidden, shape.k, shape.experts);
  fmt::print("{}\n",
             console.paint(Paint::strong, fmt::format("{:<11}  {:<12}  {:>5}  {:>5}  {:>10}  {:>8}"
                                                      "  {:>8}",
                                                      "mode", "machine", "hosts", "ranks",
                                                      "processors", "dispatch", "combine")));
  for (const ModeFit& fit : fits) {
    for (const ExpertPoint& point : fit.asked) {
      fmt::print("{:<11}  {:<12}  {:>5}  {:>5}  {:>10}  {:>8}  {:>8}\n", fit.name, point.machine,
                 point.hosts, point.ranks, point.processors, time_text(point.dispatch_us * 1e-6),
                 time_text(point.combine_us * 1e-6));
    }
  }
  fmt::print("\n");
  for (const ModeFit& fit : fits) {
    if (fit.errors.empty()) {
      fmt::print("{}: {} {}; no machine has two, so how far the fit is off is not known\n",
                 fit.name, fit.rows, fit.rows == 1 ? "row" : "rows");
      continue;
    }
    fmt::print(
        "{}: {} rows; fitted to every second one, the others are off by {:.1f} % in the "
        "median, 90 % of them by at most {:.1f} %\n",
        fit.name, fit.rows, 100 * quantile(fit.errors, kHalf), 100 * quantile(fit.errors, kNinety));
  }
  print_accounts({account});
}

void print_json(const std::vector<ModeFit>& fits, const network_model::ExpertShape& shape,
                const Account& account) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan_moe_fit/1";
  json["tokens"] = static_cast<std::int64_t>(shape.tokens);
  json["hidden"] = static_cast<std::int64_t>(shape.hidden);
  json["experts"] = shape.experts;
  json["k"] = shape.k;
  json["modes"] = nlohmann::json::array();
  for (const ModeFit& fit : fits) {
    const auto error = [&](double part) -> nlohmann::ordered_json {
      return fit.errors.empty() ? nlohmann::ordered_json()
                                : nlohmann::ordered_json(rounded(quantile(fit.errors, part)));
    };
    nlohmann::ordered_json mode = {{"mode", fit.name},
                                   {"rows", fit.rows},
                                   {"error_median", error(kHalf)},
                                   {"error_p90", error(kNinety)}};
    for (const ExpertPoint& point : fit.asked) {
      mode["machines"].push_back({{"machine", point.machine},
                                  {"hosts", point.hosts},
                                  {"ranks", point.ranks},
                                  {"processors", point.processors},
                                  {"dispatch_us", rounded(point.dispatch_us)},
                                  {"combine_us", rounded(point.combine_us)}});
    }
    json["modes"].push_back(std::move(mode));
  }
  add_accounts(json, {account});
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void fit_experts(const Arguments& arguments, const network_model::ExpertShape& shape,
                 const Console& console) {
  const std::string& path = arguments.text("fit");
  const auto parsed = network_model::parse_expert_table(read_text_file(path));
  if (!parsed) {
    throw UsageError(fmt::format("{}, {}: {}", path, parsed.position, parsed.message), {},
                     "docs/guides/experts.md says what such a table has");
  }
  const Asked asked{
      .shape = shape,
      .hosts =
          arguments.has("hosts") ? static_cast<int>(arguments.number("hosts", 1, kMostHosts)) : 0,
      .processors = arguments.has("processors")
                        ? static_cast<int>(arguments.number("processors", 1, kMostProcessors))
                        : 0};
  std::vector<ModeFit> fits;
  std::int64_t used = 0;
  for (const auto& [mode, name] : {std::pair{network_model::ExpertMode::low_latency, "low_latency"},
                                   std::pair{network_model::ExpertMode::normal, "normal"}}) {
    std::vector<ExpertPoint> points;
    for (const ExpertPoint& point : parsed.value->points) {
      if (point.mode == mode &&
          (!arguments.has("only") || point.machine == arguments.text("only"))) {
        points.push_back(point);
      }
    }
    used += static_cast<std::int64_t>(points.size());
    if (!points.empty()) {
      check_hosts(points, asked.hosts, path, name);
      fits.push_back(fit_mode(points, name, asked));
    }
  }
  if (fits.empty()) {
    throw UsageError(fmt::format("{} has no machine '{}'", path, arguments.text("only")), {},
                     "unisono help plan");
  }
  Account account = parsed.value->account;
  account.leave_out(account.used - used, kOtherMachines);
  account.used = used;
  console.json() ? print_json(fits, shape, account) : print_text(fits, shape, account, console);
}

}  // namespace unisono::cli
