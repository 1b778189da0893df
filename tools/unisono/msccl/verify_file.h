// Reads MSCCL's XML files as operands of `verify`, `show`, `sim` and other commands.
#pragma once

#include <string>

#include "cli/console.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// Recognises the file by its name: "x.xml".
bool is_msccl_file(const std::string& path);

// Returns a program as a schedule. Throws UsageError "file:line: what is wrong", also if the
// program is wrong or a schedule cannot express it.
Schedule load_msccl_schedule(const std::string& path, const std::string& text);

// Prints the findings of check(), and returns the exit code.
int verify_msccl(const std::string& path, const std::string& text, const Console& console);

}  // namespace unisono::cli
