// Reads MSCCL++ plans as operands of `verify`, `show`, `sim` and other commands.
#pragma once

#include <string>

#include "cli/console.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// A plan as a schedule. Throws UsageError "file at /place: what is wrong", also where the plan is
// wrong, or cannot be a schedule.
Schedule load_plan_schedule(const std::string& path, const std::string& text);

// Prints what check() finds; the exit code.
int verify_plan(const std::string& path, const std::string& text, const Console& console);

}  // namespace unisono::cli
