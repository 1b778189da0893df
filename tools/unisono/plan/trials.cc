#include "plan/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "cli/text_file.h"
#include "model/nccl_log.h"
#include "plan/plan.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

using model::Point;

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

}  // namespace

model::Table load_table(const std::string& path, std::optional<Collective> collective) {
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

std::vector<std::string> machines_of(const model::Table& table, const Arguments& arguments) {
  std::vector<std::string> names = table.machines();
  if (arguments.has("only")) {
    const std::string only = arguments.text("only");
    if (std::find(names.begin(), names.end(), only) == names.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      throw UsageError(fmt::format("the table has no machine '{}'", only),
                       fmt::format("one of: {}", fmt::join(views, ", ")));
    }
    return {only};
  }
  return names;
}

std::string rows_text(const std::vector<Point>& points) {
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
                     format_bytes(least), format_bytes(most));
}

void add_trial(std::vector<Trial>& trials, std::string name, model::Errors errors) {
  if (errors.count() > 0) {
    trials.push_back({.name = std::move(name), .errors = std::move(errors)});
  }
}

void print_trials(const std::vector<Trial>& trials) {
  fmt::print("  {:<28} {:>6}  {:>7}  {:>7}  worst\n", "error on rows not seen", "rows", "median",
             "p90");
  for (const Trial& trial : trials) {
    const std::size_t worst = trial.errors.worst();
    const Point& point = trial.errors.points[worst];
    fmt::print("  {:<28} {:>6}  {:>7}  {:>7}  {:+.1f} % at {}, {} ranks, {}\n", trial.name,
               trial.errors.count(), percent(trial.errors.quantile(0.5)),
               percent(trial.errors.quantile(0.9)), 100 * trial.errors.values[worst],
               to_string(point.collective), point.ranks, format_bytes(point.bytes));
  }
  if (trials.empty()) {
    fmt::print("  too few rows to leave any out\n");
  }
}

nlohmann::ordered_json trials_json(const std::vector<Trial>& trials) {
  nlohmann::ordered_json json = nlohmann::json::array();
  for (const Trial& trial : trials) {
    const std::size_t first = trial.name.find_first_not_of(' ');
    json.push_back({{"left_out", trial.name.substr(first)},
                    {"rows", trial.errors.count()},
                    {"median", rounded(trial.errors.quantile(0.5))},
                    {"p90", rounded(trial.errors.quantile(0.9))},
                    {"worst", rounded(trial.errors.values[trial.errors.worst()])}});
  }
  return json;
}

}  // namespace unisono::cli
