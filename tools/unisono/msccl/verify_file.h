// MSCCL's XML files as what `verify`, `show`, `sim` and the others are asked about.
#pragma once

#include <string>

#include "cli/console.h"
#include "msccl/program.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// By its name: "x.xml".
bool is_msccl_file(const std::string& path);

// Throws UsageError "file:line: what is wrong".
msccl::MscclProgram load_msccl_program(const std::string& path, const std::string& text);
// The same as a schedule. Throws UsageError also where the program is wrong, or cannot be one.
Schedule load_msccl_schedule(const std::string& path, const std::string& text);

// Prints what check() finds; the exit code.
int verify_msccl(const std::string& path, const std::string& text, const Console& console);

}  // namespace unisono::cli
