// `unisono trace why`: diagnoses a running job, a recording, or dumps of other programs.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"

namespace unisono::cli {

// Both return the exit code. `which`: a job, a process or a recording; empty: all jobs.
int run_why(const std::string& which, const Console& console);
int why_dumps(const std::vector<std::string>& paths, const Console& console);

}  // namespace unisono::cli
