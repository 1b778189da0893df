// The commands of the binary; each is defined in the file of its name.
#pragma once

#include <span>
#include <string_view>

#include "cli/option_table.h"

namespace unisono::cli {

extern const Command kRunCommand;
extern const Command kBenchCommand;
extern const Command kPlanCommand;
extern const Command kPlanModelCommand;
extern const Command kPipelineCommand;
extern const Command kReshardCommand;
extern const Command kStepCommand;
extern const Command kTuneCommand;
extern const Command kSimCommand;
extern const Command kTopoCommand;
extern const Command kShowCommand;
extern const Command kVerifyCommand;
extern const Command kViewCommand;
extern const Command kLearnCommand;
extern const Command kListCommand;
extern const Command kExportCommand;
extern const Command kDoctorCommand;
extern const Command kTopCommand;
extern const Command kTraceCommand;
extern const Command kEnvCommand;
extern const Command kCompletionCommand;
extern const Command kHelpCommand;

// Every command, in the order of the overview.
std::span<const Command* const> commands();
const Command* find_command(std::string_view name);
// Throws UsageError for an unknown command. If the word is a collective or a topic, the error
// suggests the right commands.
const Command& command_of(std::string_view word);
// Returns true if `unisono learn WORD` opens something.
bool is_topic(std::string_view word);

}  // namespace unisono::cli
