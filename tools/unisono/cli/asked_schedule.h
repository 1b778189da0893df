// The schedule that a command's words name: an algorithm with --ranks and --root, or a file; with
// the counts of a call, if it has been given some.
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

// `command` is for the hints of errors: "show". With counts, they say how many ranks there are.
// Throws UsageError. A file is read, not verified.
Schedule asked_schedule(const Arguments& arguments, std::string_view command,
                        std::optional<Counts> counts = {}, int most_ranks = kMostShownRanks);

}  // namespace unisono::cli
