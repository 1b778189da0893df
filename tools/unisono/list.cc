// `unisono list`: the catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "algorithms/catalog.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/target.h"
#include "cli/wrap.h"
#include "kernels/kernels.h"

namespace unisono::cli {
namespace {

std::vector<std::string_view> parameter_names(const Algorithm& algorithm) {
  return names_of(complete(algorithm, {.ranks = 2}).parameters);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string limits_of(const Algorithm& algorithm) {
  std::string limits(algorithm.limits);
  if (limits.empty()) {
    limits = algorithm.supports == nullptr ? "any n" : "some n";
  }
  if (algorithm.allows_v) {
    limits += ", v";
  }
  for (const std::string_view name : parameter_names(algorithm)) {
    limits += fmt::format(", {}=", name);
  }
  return limits;
}

// The output for a narrow terminal: an algorithm, followed by its indented description and source.
void print_blocks(const std::vector<const Algorithm*>& algorithms, std::size_t names,
                  const Console& console) {
  constexpr int kIndent = 6;
  Collective last = Collective::all_to_all_v;
  for (const Algorithm* algorithm : algorithms) {
    if (algorithm->collective != last) {
      last = algorithm->collective;
      fmt::print("{}\n", console.paint(Paint::strong, to_string(last)));
    }
    fmt::print("  {:<{}}  {}\n{}", algorithm->name, names, limits_of(*algorithm),
               wrap(algorithm->summary, kIndent, console.width()));
    for (const std::string& line : lines_of(wrap(algorithm->source, kIndent, console.width()))) {
      fmt::print("{}\n", console.paint(Paint::dim, line));
    }
  }
}

struct Widths {
  std::size_t collectives = 0;
  std::size_t names = 0;
  std::size_t limits = 0;
  std::size_t summaries = 0;
};

void print_rows(const std::vector<const Algorithm*>& algorithms, const Widths& widths,
                const Console& console) {
  fmt::print("{:<{}}  {:<{}}  {:<{}}  {:<{}}  source\n", "collective", widths.collectives,
             "algorithm", widths.names, "limits", widths.limits, "summary", widths.summaries);
  Collective last = Collective::all_to_all_v;
  for (const Algorithm* algorithm : algorithms) {
    const std::string_view collective =
        algorithm->collective == last ? std::string_view{} : to_string(algorithm->collective);
    last = algorithm->collective;
    fmt::print("{}  {:<{}}  {:<{}}  {:<{}}  {}\n",
               console.paint(Paint::strong, fmt::format("{:<{}}", collective, widths.collectives)),
               algorithm->name, widths.names, limits_of(*algorithm), widths.limits,
               algorithm->summary, widths.summaries, console.paint(Paint::dim, algorithm->source));
  }
}

void print_table(const std::vector<const Algorithm*>& algorithms, const Console& console) {
  std::size_t collectives = 10;
  std::size_t names = 9;
  std::size_t limits = 6;
  std::size_t summaries = 7;
  std::size_t sources = 6;
  for (const Algorithm* algorithm : algorithms) {
    collectives = std::max(collectives, to_string(algorithm->collective).size());
    names = std::max(names, algorithm->name.size());
    limits = std::max(limits, limits_of(*algorithm).size());
    summaries = std::max(summaries, algorithm->summary.size());
    sources = std::max(sources, algorithm->source.size());
  }
  const std::size_t before = collectives + names + limits + 6;
  const std::size_t whole = before + summaries + 2 + sources;
  if (whole > static_cast<std::size_t>(console.width())) {
    print_blocks(algorithms, names, console);
  } else {
    print_rows(algorithms, {collectives, names, limits, summaries}, console);
  }
  if (!console.quiet()) {
    fmt::print(
        "\n{} algorithms; n: the number of ranks; v: also supports the v-form;\nradix= and so on: "
        "parameters\n",
        algorithms.size());
  }
}

void print_json(const std::vector<const Algorithm*>& algorithms) {
  nlohmann::ordered_json result;
  result["schema"] = "unisono.list/1";
  result["algorithms"] = nlohmann::json::array();
  for (const Algorithm* algorithm : algorithms) {
    nlohmann::ordered_json row;
    row["collective"] = to_string(algorithm->collective);
    row["algorithm"] = algorithm->name;
    row["summary"] = algorithm->summary;
    row["limits"] = algorithm->limits;
    row["allows_v"] = algorithm->allows_v;
    row["parameters"] = parameter_names(*algorithm);
    row["source"] = algorithm->source;
    result["algorithms"].push_back(row);
  }
  fmt::print("{}\n", result.dump(2));
}

std::vector<const Algorithm*> choose(const Arguments& arguments) {
  std::vector<const Algorithm*> chosen;
  for (const Algorithm* algorithm : catalog()) {
    if (arguments.operands().empty() ||
        plain_form(collective_of(arguments.operands().front())) == algorithm->collective) {
      chosen.push_back(algorithm);
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Algorithm* a, const Algorithm* b) {
    return a->collective < b->collective;
  });
  return chosen;
}

// The (dtype, op) pairs that the reductions support.
struct Support {
  Dtype dtype;
  std::vector<ReduceOp> ops;
};

bool is_supported(Dtype dtype, ReduceOp op) {
  return kernels::find_reduce(dtype, op) != nullptr &&
         (op != ReduceOp::avg || kernels::find_divide(dtype) != nullptr) &&
         (op != ReduceOp::premul_sum || kernels::find_multiply(dtype) != nullptr);
}

std::vector<Support> supports() {
  std::vector<Support> result;
  for (int dtype = 0; dtype < kDtypeCount; ++dtype) {
    Support row{.dtype = static_cast<Dtype>(dtype), .ops = {}};
    for (int op = 0; op < kReduceOpCount; ++op) {
      if (is_supported(row.dtype, static_cast<ReduceOp>(op))) {
        row.ops.push_back(static_cast<ReduceOp>(op));
      }
    }
    result.push_back(row);
  }
  return result;
}

void print_dtypes(const Console& console) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.dtypes/1";
  json["dtypes"] = nlohmann::json::array();
  std::string text = "dtype    bytes  reduce operations (user: with every dtype)\n";
  for (const Support& row : supports()) {
    std::vector<std::string_view> names;
    for (const ReduceOp op : row.ops) {
      names.push_back(to_string(op));
    }
    json["dtypes"].push_back(
        {{"dtype", to_string(row.dtype)}, {"bytes", size_of(row.dtype)}, {"ops", names}});
    text += fmt::format("{:<8} {:>5}  {}\n", to_string(row.dtype), size_of(row.dtype),
                        fmt::join(names, " "));
  }
  fmt::print("{}", console.json() ? json.dump(2) + "\n" : text);
}

void print_names(const char* what, const std::vector<std::string>& names, const Console& console) {
  if (console.json()) {
    const nlohmann::ordered_json json = {{"schema", fmt::format("unisono.{}/1", what)},
                                         {what, names}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}\n", fmt::join(names, "\n"));
}

int run_list(const Arguments& arguments, const Console& console) {
  const std::vector<const Algorithm*> algorithms = choose(arguments);
  if (arguments.has("dtypes")) {
    print_dtypes(console);
  } else if (arguments.has("collectives")) {
    std::vector<std::string> names;
    for (int i = 0; i < kCollectiveCount; ++i) {
      names.emplace_back(to_string(static_cast<Collective>(i)));
    }
    print_names("collectives", names, console);
  } else if (arguments.has("names")) {
    std::vector<std::string> names;
    for (const Algorithm* algorithm : algorithms) {
      names.push_back(fmt::format("{}/{}", to_string(algorithm->collective), algorithm->name));
    }
    print_names("names", names, console);
  } else if (console.json()) {
    print_json(algorithms);
  } else {
    print_table(algorithms, console);
  }
  return kDone;
}

constexpr Option kListOptions[] = {
    {.name = "names", .help = "Print only collective/algorithm, one per line."},
    {.name = "dtypes", .help = "List the data types and the reduce operations of each."},
    {.name = "collectives", .help = "Print only the names of the collectives, one per line."}};

}  // namespace

const Command kListCommand = {
    .name = "list",
    .summary = "list the algorithms, with their limits and sources",
    .operands = "[COLLECTIVE]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono list", "List the whole catalogue."},
                  {"unisono list all_reduce", "List the algorithms of one collective."},
                  {"unisono list --names | xargs -n1 unisono show -n 4",
                   "Show every schedule for four ranks."}}},
    .description =
        "Each row is an algorithm. `show`, `verify` and `bench --algorithm` accept its name, "
        "collective/algorithm. A parameter follows the name: broadcast/chain:segments=16. "
        "Parameters that are not given have defaults, which may depend on n.",
    .options = kListOptions,
    .run = run_list};

}  // namespace unisono::cli
