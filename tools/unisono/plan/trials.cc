#include "plan/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/bytes_text.h"
#include "cli/account.h"
#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "network_model/csv.h"
#include "network_model/logs/benchmark_log.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

using cost::Point;

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

// Leaves out rows with a wait policy or a number of threads.
network_model::Table table_of_algorithms(const std::string& path, network_model::Table table,
                                         std::vector<Account>& accounts) {
  const auto others =
      static_cast<std::int64_t>(std::erase_if(table.rows, [](const network_model::Table::Row& row) {
        return !row.wait.empty() || row.threads != 0;
      }));
  if (table.rows.empty()) {
    throw UsageError(fmt::format("{} has no times of algorithms", path),
                     "all rows measure wait policies or numbers of threads",
                     "unisono tune --table reads them, together with a table of algorithms");
  }
  table.account.used -= others;
  table.account.leave_out(others,
                          "of wait policies or numbers of threads, which unisono tune reads");
  accounts.push_back(table.account);
  return table;
}

// Returns true if the first line names columns, which are words; other programs print sentences.
bool is_table(const std::string& text) {
  const auto names = network_model::csv_fields(text.substr(0, text.find('\n')));
  return !begins_as_json(text) && names && names->size() > 1 &&
         std::ranges::none_of(
             *names, [](const std::string& name) { return name.find(' ') != std::string::npos; });
}

// Throws UsageError for a file that is not a table.
void refuse_other_files(const std::string& path, const std::string& text) {
  const std::string foreign = foreign_file(text);
  if (!foreign.empty() || !is_table(text)) {
    throw UsageError(
        foreign.empty() ? fmt::format("{} is neither a table nor the output of a benchmark that "
                                      "unisono reads",
                                      path)
                        : fmt::format("{} is {}", path, foreign),
        "it reads tables (CSV), and the output about collectives of nccl-tests (also as JSON, -J, "
        "of one run), OSU micro-benchmarks, ucc_perftest, the oneCCL benchmark and the Intel MPI "
        "benchmarks",
        "unisono help plan says which columns a table has");
  }
}

}  // namespace

network_model::LogQuestion log_question_of(const Arguments& arguments) {
  constexpr std::int64_t kMostInALog = 1'000'000;
  network_model::LogQuestion question;
  if (!arguments.operands().empty()) {
    question.collective = collective_of(arguments.operands().front());
  }
  if (arguments.has("ranks")) {
    question.ranks = static_cast<int>(arguments.number("ranks", 1, kMostInALog));
  }
  return question;
}

network_model::Table load_table(const std::string& path, const network_model::LogQuestion& question,
                                std::vector<Account>& accounts) {
  const std::string text = read_text_file(path);
  if (!network_model::is_benchmark_log(text)) {
    auto parsed = network_model::parse_table(text);
    if (!parsed) {
      refuse_other_files(path, text);
      throw UsageError(
          fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message), {},
          "unisono help plan says which columns a table has");
    }
    if (question.collective || question.ranks > 0) {
      throw UsageError(question.collective
                           ? "a table states which collectives were measured: do not name one"
                           : "a table states how many ranks were measured: leave -n out",
                       {}, "save the machine with --save, and use it with --machine");
    }
    return table_of_algorithms(path, std::move(*parsed.value), accounts);
  }
  auto parsed = network_model::parse_benchmark_log(text, question);
  if (!parsed) {
    const std::size_t first = std::min(parsed.message.find('\n'), parsed.message.size());
    const std::string message = parsed.message.substr(0, first);
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), message),
                     parsed.message.substr(std::min(first + 1, parsed.message.size())),
                     "unisono help plan says which logs are read, and what they must contain");
  }
  accounts.push_back(std::move(parsed.value->account));
  return std::move(parsed.value->table);
}

void print_accounts(const std::vector<Account>& accounts) {
  for (const Account& account : accounts) {
    fmt::print("\n{}\n", account_text(account));
  }
}

void add_accounts(nlohmann::ordered_json& json, const std::vector<Account>& accounts) {
  for (const Account& account : accounts) {
    json["accounts"].push_back(account_json(account));
  }
}

void leave_out_others(const network_model::Table& table, const std::vector<std::string>& machines,
                      Account& account) {
  const std::int64_t others =
      std::ranges::count_if(table.rows, [&machines](const network_model::Table::Row& row) {
        return std::ranges::find(machines, row.machine) == machines.end();
      });
  account.used -= others;
  account.leave_out(others, kOtherMachines);
}

std::vector<std::string> machines_of(const network_model::Table& table,
                                     const Arguments& arguments) {
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

void add_trial(std::vector<Trial>& trials, std::string name, network_model::Errors errors) {
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
