// `unisono env`: every variable that unisono reads, its value, and where the value came from.
#include "base/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/wrap.h"

namespace unisono::cli {
namespace {

struct Setting {
  EnvVariable variable;
  std::string value;
  bool set = false;
};

// Returns true for a secret, of which only the presence is shown.
bool is_secret(std::string_view name) {
  return name.ends_with("_TOKEN");
}

std::vector<Setting> read_rows() {
  std::vector<Setting> rows;
  for (const EnvVariable& variable : env_variables()) {
    const auto value = read_env(variable.name);
    Setting row{.variable = variable, .value = {}, .set = value.has_value()};
    row.value = value ? (is_secret(variable.name) ? "(hidden)" : *value)
                      : std::string(variable.default_value);
    rows.push_back(row);
  }
  return rows;
}

std::string_view origin_of(const Setting& row) {
  return row.set ? "environment" : "default";
}

std::string meaning_of(const Setting& row) {
  return row.set && !row.variable.default_value.empty()
             ? fmt::format("{} (default {})", row.variable.help, row.variable.default_value)
             : std::string(row.variable.help);
}

std::string indented(const std::string& text, int width) {
  std::string lines = wrap(text, 4, width);
  lines.pop_back();  // the caller ends the line
  return lines;
}

void print_text(const std::vector<Setting>& rows, const Console& console) {
  std::size_t names = 8;
  std::size_t values = 5;
  for (const Setting& row : rows) {
    names = std::max(names, row.variable.name.size());
    values = std::max(values, std::min<std::size_t>(row.value.size(), 40));
  }
  std::size_t meanings = 7;
  for (const Setting& row : rows) {
    meanings = std::max(meanings, meaning_of(row).size());
  }
  const std::size_t before = names + values + 17;
  const bool one_line = before + meanings <= static_cast<std::size_t>(console.width());
  fmt::print("{:<{}}  {:<{}}  from{}\n", "variable", names, "value", values,
             one_line ? "         meaning" : "");
  for (const Setting& row : rows) {
    const std::string value = fmt::format("{:<{}}", row.value.empty() ? "-" : row.value, values);
    fmt::print("{:<{}}  {}  {}\n", row.variable.name, names,
               console.paint(row.set ? Paint::accent : Paint::plain, value),
               one_line ? fmt::format("{:<11}  {}", origin_of(row), meaning_of(row))
                        : fmt::format("{}\n{}", origin_of(row),
                                      indented(meaning_of(row), console.width())));
  }
}

int run_env(const Arguments&, const Console& console) {
  const std::vector<Setting> rows = read_rows();
  if (!console.json()) {
    print_text(rows, console);
    return kDone;
  }
  nlohmann::ordered_json result;
  result["schema"] = "unisono.env/1";
  result["variables"] = nlohmann::json::array();
  for (const Setting& row : rows) {
    result["variables"].push_back({{"name", row.variable.name},
                                   {"value", row.value},
                                   {"default", row.variable.default_value},
                                   {"from", row.set ? "environment" : "default"},
                                   {"help", row.variable.help}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return kDone;
}

}  // namespace

const Command kEnvCommand = {
    .name = "env",
    .summary = "list every variable that unisono reads, and where its value comes from",
    .operands = "",
    .max_operands = 0,
    .runs_program = false,
    .examples = {{{"unisono env", "List every UNISONO_* variable with value, source and meaning."},
                  {"unisono env --json", "The same as JSON."},
                  {"unisono run -n 1 -- unisono env", "List what a rank sees."}}},
    .description =
        "A command line option overrides a variable, and a variable overrides its default. Unknown "
        "UNISONO_* variables are reported on stderr with the nearest known name. Tokens are never "
        "printed.",
    .options = {},
    .run = run_env};

}  // namespace unisono::cli
