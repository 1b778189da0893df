#include "cli/commands.h"

namespace unisono::cli {

std::span<const Command* const> commands() {
  static constexpr const Command* kCommands[] = {
      &kRunCommand,      &kBenchCommand, &kPlanCommand,   &kPlanModelCommand, &kTuneCommand,
      &kSimCommand,      &kTopoCommand,  &kShowCommand,   &kViewCommand,      &kLearnCommand,
      &kVerifyCommand,   &kListCommand,  &kExportCommand, &kTopCommand,       &kTraceCommand,
      &kPipelineCommand, &kStepCommand,  &kDoctorCommand, &kEnvCommand,       &kCompletionCommand,
      &kHelpCommand};
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

}  // namespace unisono::cli
