// Parsing by CLI11, driven by the option table. CLI11 splits the command line; this file decides
// which words are allowed, and writes all error texts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/arguments.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

std::string next_of(const Command& command) {
  return fmt::format("unisono help {}", command.name);
}

[[noreturn]] void fail_unknown_option(const Command& command, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string_view> names;
  const std::vector<Option> options = all_options(command);
  for (const Option& option : options) {
    names.push_back(option.name);
  }
  const std::size_t dashes = flag.find_first_not_of('-');
  const std::string_view bare =
      dashes == std::string::npos ? std::string_view{} : std::string_view(flag).substr(dashes);
  throw UsageError(fmt::format("unknown option {}", flag), did_you_mean(bare, names, "--"),
                   next_of(command));
}

void check_choice(const Command& command, const Option& option, const std::string& value) {
  const std::vector<std::string_view> choices = split_choices(option.choices);
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) {
    return;
  }
  std::string detail = did_you_mean(value, choices);
  if (detail.empty()) {
    detail = fmt::format("one of: {}", fmt::join(choices, ", "));
  }
  throw UsageError(fmt::format("--{} cannot be '{}'", option.name, value), detail,
                   next_of(command));
}

std::string flag_names(const Option& option) {
  return option.letter == 0 ? fmt::format("--{}", option.name)
                            : fmt::format("-{},--{}", option.letter, option.name);
}

// CLI11 says "--timeout: 1 required TEXT missing"; only the option's name is used.
[[noreturn]] void fail_syntax(const Command& command, const std::string& what) {
  const std::string name = what.substr(0, what.find_first_of(": "));
  for (const Option& option : all_options(command)) {
    const std::string names = flag_names(option);
    if (name == fmt::format("--{}", option.name) || name == fmt::format("-{}", option.letter)) {
      if (option.value.empty()) {
        throw UsageError(fmt::format("--{} takes no value", option.name), {}, next_of(command));
      }
      throw UsageError(fmt::format("--{} needs a value: {}", option.name, option.value),
                       std::string(option.help), next_of(command));
    }
  }
  throw UsageError(what, {}, next_of(command));
}

}  // namespace

Arguments Arguments::parse(const Command& command, std::span<const std::string> words) {
  Arguments result;
  result.command_ = &command;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<Option> options = all_options(command);

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.prefix_command(command.runs_program);
  std::map<std::string_view, std::vector<std::string>> values;
  std::map<std::string_view, bool> switches;
  for (const Option& option : options) {
    if (option.value.empty()) {
      app.add_flag(flag_names(option), switches[option.name])
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      app.add_option(flag_names(option), values[option.name])->allow_extra_args(false);
    }
  }
  // CLI11 reads its words from the last to the first.
  std::vector<std::string> reversed(words.begin(), dashes);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    fail_syntax(command, error.what());
  }

  for (const Option& option : options) {
    if (switches[option.name]) {
      result.values_[std::string(option.name)] = {};
    }
    for (const std::string& value : values[option.name]) {
      check_choice(command, option, value);
      result.values_[std::string(option.name)].push_back(value);
    }
  }
  std::vector<std::string> rest = app.remaining();
  if (command.runs_program) {
    if (!rest.empty() && rest.front().starts_with("-")) {
      fail_unknown_option(command, rest.front());
    }
    result.program_ = std::move(rest);
    if (dashes != words.end()) {
      result.program_.insert(result.program_.end(), dashes + 1, words.end());
    }
    return result;
  }
  for (const std::string& word : rest) {
    if (word.size() > 1 && word.starts_with("-")) {
      fail_unknown_option(command, word);
    }
  }
  result.operands_ = std::move(rest);
  if (dashes != words.end()) {
    result.operands_.insert(result.operands_.end(), dashes + 1, words.end());
  }
  if (command.max_operands >= 0 &&
      result.operands_.size() > static_cast<std::size_t>(command.max_operands)) {
    throw UsageError(fmt::format("unexpected word '{}'",
                                 result.operands_[static_cast<std::size_t>(command.max_operands)]),
                     {}, next_of(command));
  }
  return result;
}

}  // namespace unisono::cli
