// `unisono help` and `unisono completion`.
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

int run_help(const Arguments& arguments, const Console& console) {
  const Command* command = nullptr;
  if (!arguments.operands().empty()) {
    command = &command_of(arguments.operands().front());
  }
  if (console.json()) {
    fmt::print("{}", help_json(command));
  } else if (arguments.has("man")) {
    fmt::print("{}", man_page(command));
  } else {
    fmt::print("{}", command == nullptr ? overview_text(console.width())
                                        : help_text(*command, console.width()));
  }
  return kDone;
}

int run_completion(const Arguments& arguments, const Console& console) {
  static constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
  const std::string shell =
      arguments.operands().empty() ? std::string{} : arguments.operands().front();
  if (std::find(kShells.begin(), kShells.end(), shell) == kShells.end()) {
    const std::string hint = did_you_mean(shell, kShells);
    throw UsageError(shell.empty() ? "completion for which shell?"
                                   : fmt::format("no completion for '{}'", shell),
                     hint.empty() ? "one of: bash, zsh, fish" : hint, "unisono help completion");
  }
  const std::string script = completion_script(shell);
  if (console.json()) {
    fmt::print("{{\"schema\": \"unisono.completion/1\", \"shell\": \"{}\", \"lines\": {}}}\n",
               shell, std::count(script.begin(), script.end(), '\n'));
  } else {
    fmt::print("{}", script);
  }
  return kDone;
}

constexpr Option kHelpOptions[] = {
    {.name = "man", .help = "Print the man page (roff): unisono help run --man | man -l -"}};

}  // namespace

const Command kHelpCommand = {
    .name = "help",
    .summary = "explain a command, with worked examples",
    .operands = "[COMMAND]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono help", "List every command."},
                  {"unisono help show", "Show the examples and options of one command."},
                  {"unisono help run --man | man -l -", "Show the same as a man page."}}},
    .description = "Prints help on stdout. `unisono COMMAND --help` is the same.",
    .options = kHelpOptions,
    .run = run_help};

const Command kCompletionCommand = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .operands = "SHELL",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"source <(unisono completion bash)", "Enable completion in this bash."},
                  {"unisono completion zsh > ~/.zfunc/_unisono", "For zsh, in a folder in $fpath."},
                  {"unisono completion fish > ~/.config/fish/completions/unisono.fish",
                   "For fish."}}},
    .description =
        "The scripts are generated from the parser's own tables, so they always match it.",
    .options = {},
    .run = run_completion};

}  // namespace unisono::cli
