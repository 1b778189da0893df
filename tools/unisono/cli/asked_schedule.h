// The schedule that a command's words name: an algorithm with --ranks and --root, or a file.
#pragma once

#include <string_view>

#include "cli/arguments.h"
#include "schedule/schedule.h"

namespace unisono::cli {

inline constexpr int kMostShownRanks = 1024;

// `command` is for the hints of errors: "show". Throws UsageError. A file is read, not verified.
Schedule asked_schedule(const Arguments& arguments, std::string_view command);

}  // namespace unisono::cli
