#include "cli/commands.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/failure.h"
#include "unisono/types.hpp"

namespace unisono::cli {

std::span<const Command* const> commands() {
  static constexpr const Command* kCommands[] = {
      &kRunCommand,        &kBenchCommand, &kPlanCommand,    &kPlanModelCommand, &kTuneCommand,
      &kSimCommand,        &kTopoCommand,  &kShowCommand,    &kViewCommand,      &kLearnCommand,
      &kVerifyCommand,     &kListCommand,  &kExportCommand,  &kTopCommand,       &kTraceCommand,
      &kPipelineCommand,   &kStepCommand,  &kReshardCommand, &kDoctorCommand,    &kEnvCommand,
      &kCompletionCommand, &kHelpCommand};
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const Command* command : commands()) {
    if (command->name == name) {
      return command;
    }
  }
  return nullptr;
}

const Command& command_of(std::string_view word) {
  if (const Command* const command = find_command(word)) {
    return *command;
  }
  std::vector<std::string_view> names;
  for (const Command* command : commands()) {
    names.push_back(command->name);
  }
  std::string detail = did_you_mean(word, names);
  if (parse_collective(word)) {
    detail = fmt::format("unisono bench {0} measures it, unisono show {0} draws it", word);
  } else if (word == "moe" || word == "experts") {
    detail = "unisono bench moe measures mixtures of experts, unisono plan moe predicts them";
  }
  throw UsageError(fmt::format("unknown command '{}'", word), detail, "unisono help");
}

}  // namespace unisono::cli
