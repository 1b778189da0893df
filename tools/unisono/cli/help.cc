#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/wrap.h"

namespace unisono::cli {
namespace {

constexpr int kMostWidth = 96;
constexpr int kLeastWidth = 40;
constexpr int kSummaryColumn = 14;

int readable(int width) {
  return std::clamp(width, kLeastWidth, kMostWidth);
}

std::string left_column(const Option& option) {
  std::string text = option.letter == 0 ? std::string("    ") : fmt::format("-{}, ", option.letter);
  text += fmt::format("--{}", option.name);
  if (!option.value.empty()) {
    text += fmt::format(" {}", option.value);
  }
  return text;
}

std::string explanation(const Option& option) {
  std::string text(option.help);
  if (!option.choices.empty()) {
    text += fmt::format(" One of {}.", fmt::join(split_choices(option.choices), ", "));
  }
  if (option.repeats) {
    text += " May be repeated.";
  }
  if (!option.fallback.empty()) {
    text += fmt::format(" Default: {}.", option.fallback);
  }
  return text;
}

std::string option_lines(std::span<const Option> options, int width) {
  std::size_t column = 0;
  for (const Option& option : options) {
    column = std::max(column, left_column(option).size());
  }
  const int indent = static_cast<int>(column) + 4;
  std::string text;
  for (const Option& option : options) {
    const std::string folded = wrap(explanation(option), indent, width);
    std::string left = fmt::format("  {:<{}}  ", left_column(option), column);
    text += left + folded.substr(left.size());
  }
  return text;
}

nlohmann::ordered_json json_of(const Command& command) {
  nlohmann::ordered_json result;
  result["name"] = command.name;
  result["summary"] = command.summary;
  result["operands"] = command.operands;
  result["examples"] = nlohmann::json::array();
  for (const Example& example : command.examples) {
    result["examples"].push_back({{"command", example.command}, {"what", example.what}});
  }
  result["options"] = nlohmann::json::array();
  for (const Option& option : all_options(command)) {
    nlohmann::ordered_json row;
    row["name"] = option.name;
    if (option.letter != 0) {
      row["letter"] = std::string(1, option.letter);
    }
    row["value"] = option.value;
    row["help"] = option.help;
    row["default"] = option.fallback;
    row["choices"] = split_choices(option.choices);
    result["options"].push_back(row);
  }
  return result;
}

}  // namespace

std::string overview_text(int width) {
  std::vector<std::string> texts = {
      "unisono - collective communication: run it, measure it, prove it, see it\n\n"
      "usage  unisono COMMAND [OPTION...]\n\ncommands\n",
      "\n`unisono help COMMAND` gives worked examples and every option.\n\n"
      "exit codes\n"
      "  0  done and correct                      4  timed out\n"
      "  1  the answer is no (wrong, invalid)     5  slower than requested\n"
      "  2  usage or configuration              128+N  ended by signal N\n"
      "  3  could not run (peer lost, resource)\n"};
  for (const Command* command : commands()) {
    texts.emplace_back(command->summary);
  }
  localize_all(texts);
  std::string text = texts[0];
  for (std::size_t i = 0; i < commands().size(); ++i) {
    const std::string folded = wrap(texts[i + 2], kSummaryColumn, readable(width));
    text += fmt::format("  {:<11} {}", commands()[i]->name, folded.substr(kSummaryColumn));
  }
  return text + texts[1];
}

std::string help_text(const Command& command, int width) {
  width = readable(width);
  std::string text = wrap(fmt::format("unisono {} - {}", command.name, command.summary), 0, width);
  text += "\nexamples\n";
  for (const Example& example : command.examples) {
    text += wrap_command(example.command, 2, width) + wrap(example.what, 6, width);
  }
  const std::string usage =
      wrap(fmt::format("unisono {} [OPTION...] {}", command.name, command.operands), 7, width);
  text += "\nusage  " + usage.substr(7) + "\n";
  text += wrap(command.description, 0, width);
  if (!command.options.empty()) {
    text += "\noptions\n" + option_lines(command.options, width);
  }
  text += "\ncommon options\n" + option_lines(common_options(), width);
  return text;
}

std::string help_json(const Command* command) {
  nlohmann::ordered_json result;
  result["schema"] = "unisono.help/1";
  result["commands"] = nlohmann::json::array();
  for (const Command* candidate : commands()) {
    if (command == nullptr || candidate == command) {
      result["commands"].push_back(json_of(*candidate));
    }
  }
  return result.dump(2) + "\n";
}

}  // namespace unisono::cli
