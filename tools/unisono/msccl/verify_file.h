// MSCCL's XML files as what `verify`, `show`, `sim` and the others are asked about.
#pragma once

#include <string>

#include "cli/console.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// By its name: "x.xml".
bool is_msccl_file(const std::string& path);

// A program as a schedule. Throws UsageError "file:line: what is wrong", also where the program is
// wrong, or cannot be a schedule.
Schedule load_msccl_schedule(const std::string& path, const std::string& text);

// Prints what check() finds; the exit code.
int verify_msccl(const std::string& path, const std::string& text, const Console& console);

}  // namespace unisono::cli
