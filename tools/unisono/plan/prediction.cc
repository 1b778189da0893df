// `unisono plan --machine`: predicts the time of a call on a fitted machine for each algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes_text.h"
#include "base/collectives.h"
#include "cli/failure.h"
#include "plan/plan.h"
#include "select/choice.h"

namespace unisono::cli {
namespace {

struct PredictionRow {
  std::string algorithm;              // "": the library's choice
  std::optional<double> time_s = {};  // nothing: unknown on this machine
  std::optional<double> measured_s = {};
  bool chosen = false;
};

std::string name_of(const PredictionRow& row) {
  return row.algorithm.empty() ? "the library's choice" : row.algorithm;
}

// Describes how far the question is from all measurements.
std::string beyond_measurements(const std::vector<cost::Point>& points,
                                const network_model::Call& call) {
  const Collective collective = plain_form(call.collective);
  std::set<std::string> collectives;
  std::set<int> counts;
  double least = std::numeric_limits<double>::max();
  double most = 0;
  for (const cost::Point& point : points) {
    collectives.insert(std::string(to_string(plain_form(point.collective))));
    if (plain_form(point.collective) == collective) {
      counts.insert(point.ranks);
      least = std::min(least, point.bytes);
      most = std::max(most, point.bytes);
    }
  }
  if (counts.empty()) {
    return fmt::format("no {} was measured; this follows from {}", to_string(collective),
                       fmt::join(collectives, ", "));
  }
  std::vector<std::string> beyond;
  if (call.ranks < *counts.begin() || call.ranks > *counts.rbegin()) {
    beyond.push_back(fmt::format("{} ranks (measured: {})", call.ranks, fmt::join(counts, ", ")));
  }
  if (call.bytes < least || call.bytes > most) {
    beyond.push_back(fmt::format("{} (measured: {} to {})", format_bytes(call.bytes),
                                 format_bytes(least), format_bytes(most)));
  }
  return beyond.empty() ? "" : fmt::format("extrapolated to {}", fmt::join(beyond, " and "));
}

// The rows, fastest first, with the chosen one.
class Prediction {
 public:
  Prediction(const cost::NamedMachine& named, const network_model::Call& call)
      : named_(named), call_(call), collective_(plain_form(call.collective)) {
    add_known();
    if (rows_.empty()) {
      throw UsageError(
          fmt::format("{} has no measurements of {}", named.name, to_string(call.collective)),
          "and none of a library that chooses itself");
    }
    if (std::any_of(rows_.begin(), rows_.end(),
                    [](const PredictionRow& row) { return !row.algorithm.empty(); })) {
      add_others();
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const PredictionRow& a, const PredictionRow& b) {
                       return a.time_s && (!b.time_s || *a.time_s < *b.time_s);
                     });
    choose();
    note_ = beyond_measurements(named.machine.points(), call);
    error_ = error_bar(named.machine.points(), call);
  }

  const std::vector<PredictionRow>& rows() const { return rows_; }
  // Empty if there is no choice.
  const std::string& why() const { return why_; }
  // Empty if the call is within the measured range.
  const std::string& note() const { return note_; }
  const ErrorBar& error() const { return error_; }
  bool has_measured() const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [](const PredictionRow& row) { return row.measured_s.has_value(); });
  }

 private:
  bool serves(const std::string& name) const {
    const Algorithm* algorithm = find_algorithm(collective_, name);
    return algorithm != nullptr &&
           can_serve(*algorithm,
                     {.ranks = call_.ranks, .parameters = parse_parameters(*algorithm, name)});
  }

  std::optional<double> measured(const std::string& algorithm) const {
    for (const cost::Point& point : named_.machine.points()) {
      if (plain_form(point.collective) == collective_ && point.algorithm == algorithm &&
          point.ranks == call_.ranks && point.bytes == call_.bytes) {
        return point.time_s;
      }
    }
    return std::nullopt;
  }

  void add(const std::string& algorithm) {
    rows_.push_back(
        {.algorithm = algorithm,
         .time_s = named_.machine.time_s(call_.collective, algorithm, call_.ranks, call_.bytes),
         .measured_s = measured(algorithm)});
  }

  void add_known() {
    if (named_.machine.knows(call_.collective, "")) {
      add("");
    }
    const std::string prefix = fmt::format("{}/", to_string(collective_));
    for (const auto& [group, fitted] : named_.machine.groups()) {
      if (group.starts_with(prefix) && serves(group.substr(prefix.size()))) {
        add(group.substr(prefix.size()));
      }
    }
  }

  void add_others() {
    for (const Algorithm* algorithm : catalog()) {
      const std::string name(algorithm->name);
      if (algorithm->collective == collective_ && serves(name) &&
          !named_.machine.knows(collective_, name)) {
        rows_.push_back({.algorithm = name});
      }
    }
  }

  // A profile makes no choice far from its measurements.
  void choose_built_in() {
    const std::string_view usual =
        comm::default_algorithm(collective_, call_.ranks, static_cast<std::size_t>(call_.bytes));
    for (PredictionRow& row : rows_) {
      row.chosen = row.algorithm == usual;
    }
    why_ = "the built-in choice: the profile has no measurements near this size and rank count";
  }

  void choose() {
    const cost::Choice* row = named_.choices.find(collective_, call_.ranks, call_.bytes);
    if (!named_.choices.rows().empty() && (row == nullptr || row->algorithm.empty())) {
      choose_built_in();
      return;
    }
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const PredictionRow& one) {
      return row != nullptr && one.algorithm == row->algorithm && one.time_s;
    });
    PredictionRow& fastest = rows_.front();
    if (found == rows_.end()) {
      if (rows_.size() > 1 && rows_[1].time_s) {
        fastest.chosen = true;
        why_ = fmt::format("the fastest, saves {} on {}",
                           time_text(*rows_[1].time_s - *fastest.time_s), name_of(rows_[1]));
      }
      return;
    }
    found->chosen = true;
    why_ = fmt::format("chosen for {} rank{} from {}", row->ranks, row->ranks == 1 ? "" : "s",
                       format_bytes(row->from_bytes));
    if (found != rows_.begin()) {
      // A choice stays unless another algorithm is 5 % faster. A larger gain shows that this call
      // is far from the measurements.
      const double gain = 100 * (*found->time_s / *fastest.time_s - 1);
      why_ += gain < 10 ? fmt::format("; {} is {:.1f} % faster here, which is not worth changing",
                                      name_of(fastest), gain)
                        : fmt::format(
                              "; the fit says {} takes {}: tune for {} rank{} and this "
                              "size, or with more time",
                              name_of(fastest), time_text(*fastest.time_s), call_.ranks,
                              call_.ranks == 1 ? "" : "s");
    } else if (rows_.size() > 1 && rows_[1].time_s) {
      why_ += fmt::format("; saves {} on {}", time_text(*rows_[1].time_s - *found->time_s),
                          name_of(rows_[1]));
    }
  }

  const cost::NamedMachine& named_;
  const network_model::Call& call_;
  Collective collective_;
  std::vector<PredictionRow> rows_;
  std::string why_;
  std::string note_;
  ErrorBar error_;
};

void print_json(const Prediction& prediction, const cost::NamedMachine& named,
                const network_model::Call& call, double bus_bytes) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan/1";
  json["machine"] = named.name;
  json["collective"] = to_string(call.collective);
  json["ranks"] = call.ranks;
  json["bytes"] = static_cast<std::uint64_t>(call.bytes);
  json["candidates"] = nlohmann::json::array();
  for (const PredictionRow& row : prediction.rows()) {
    nlohmann::ordered_json entry;
    entry["algorithm"] = row.algorithm;
    entry["time_us"] = nullptr;
    if (row.time_s) {
      entry["time_us"] = rounded(*row.time_s * 1e6);
      entry["busbw_gb_per_s"] = rounded(bus_bytes / *row.time_s * 1e-9);
    }
    if (row.measured_s) {
      entry["measured_us"] = rounded(*row.measured_s * 1e6);
    }
    if (row.chosen) {
      entry["chosen"] = true;
    }
    json["candidates"].push_back(std::move(entry));
  }
  if (!prediction.why().empty()) {
    json["why"] = prediction.why();
  }
  if (!prediction.note().empty()) {
    json["note"] = prediction.note();
  }
  if (const ErrorBar& error = prediction.error(); error.rows > 0) {
    json["error"] = {{"left_out", error.left_out},
                     {"rows", error.rows},
                     {"median", rounded(error.median)},
                     {"p90", rounded(error.p90)}};
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Prediction& prediction, const cost::NamedMachine& named,
                const network_model::Call& call, double bus_bytes, const Console& console) {
  fmt::print("{}  {} rank{}  {}   {}, fitted to {} measurements\n\n", to_string(call.collective),
             call.ranks, call.ranks == 1 ? "" : "s", format_bytes(call.bytes), named.name,
             named.machine.points().size());
  const bool measured = prediction.has_measured();
  fmt::print("{}\n",
             console.paint(Paint::strong, fmt::format("{:<22}  {:>8}{}  {:>7}", "algorithm", "time",
                                                      measured ? "  measured" : "", "busbw")));
  for (const PredictionRow& row : prediction.rows()) {
    std::string line =
        fmt::format("{:<22}  {:>8}", name_of(row), row.time_s ? time_text(*row.time_s) : "-");
    if (measured) {
      line += fmt::format("  {:>8}", row.measured_s ? time_text(*row.measured_s) : "-");
    }
    line += row.time_s ? fmt::format("  {:>7.2f}", bus_bytes / *row.time_s * 1e-9)
                       : fmt::format("  {:>7}", "-");
    fmt::print("{}{}\n", line, row.chosen ? "  <- chosen" : "");
  }
  const ErrorBar& error = prediction.error();
  fmt::print("\n");
  if (!prediction.why().empty()) {
    fmt::print("why    {}\n", prediction.why());
  }
  if (!prediction.note().empty()) {
    fmt::print("note   {}\n", prediction.note());
  }
  if (error.rows > 0) {
    fmt::print(
        "error  {:.1f} % in the median, {:.1f} % at p90, on {} measurements whose {} was left "
        "out\n",
        100 * error.median, 100 * error.p90, error.rows, error.left_out);
  } else {
    fmt::print("error  not known: too few measurements to leave any out\n");
  }
}

}  // namespace

void print_prediction(const cost::NamedMachine& machine, const network_model::Call& call,
                      const Console& console) {
  const Prediction prediction(machine, call);
  const double bus_bytes = call.bytes * unisono::bus_factor(call.collective, call.ranks);
  if (console.json()) {
    print_json(prediction, machine, call, bus_bytes);
  } else {
    print_text(prediction, machine, call, bus_bytes, console);
  }
}

}  // namespace unisono::cli
