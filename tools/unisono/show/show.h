// The forms in which `unisono show` draws a schedule.
#pragma once

#include <string>

#include "base/rank_list.h"
#include "cli/console.h"
#include "schedule/schedule.h"

namespace unisono::cli {

struct ShowOptions {
  int step = -1;  // from 0; -1: all
  int width = 100;
};

// Returns the schedule's head line without the step: "all_reduce/ring  4 ranks".
std::string head_of(const Schedule& schedule);
// "reduce-scatter", or empty.
std::string phase_of(const Schedule& schedule, int step);

// Draws the counts of an exchange as a table with sums; only the sums if the table is too wide.
std::string draw_counts(const Counts& counts, int width, const Console& console);

// Draws provenance strips: the contents of every chunk on every rank, before each step and at the
// end. Empty if they are wider than the limit.
std::string draw_strips(const Schedule& schedule, const ShowOptions& options,
                        const Console& console);

// Draws one line per step, or the moves of one step, for schedules that are too large for strips.
std::string draw_summary(const Schedule& schedule, const ShowOptions& options,
                         const Console& console);

}  // namespace unisono::cli
