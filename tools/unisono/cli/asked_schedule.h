// Returns the schedule that a command line names: an algorithm with --ranks and --root, or a file.
// If --counts is given, the schedule has the counts of that call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "schedule/schedule.h"

namespace unisono::cli {

inline constexpr int kMostShownRanks = 1024;

// Reads a table of counts (schedule/counts.h). Throws UsageError "file:line: what is wrong".
Counts load_counts(const std::string& path);

// Returns the counts of --counts, if it is given. REQUIRES: the command has that option.
std::optional<Counts> asked_counts(const Arguments& arguments);

// Turns the schedule into the exchange of these counts. `name`: the user's name of the schedule,
// for errors. Throws UsageError if it is for another collective or number of ranks.
void give_counts(Schedule& schedule, Counts counts, const std::string& name);

// `command` is the command in hints of errors: "show". Counts define the number of ranks. Throws
// UsageError. A file is read, not verified.
Schedule asked_schedule(const Arguments& arguments, std::string_view command,
                        std::optional<Counts> counts = {}, int most_ranks = kMostShownRanks);

}  // namespace unisono::cli
