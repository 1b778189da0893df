// The parts of `unisono step`.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "step/step.h"

namespace unisono::cli {

// A model by name or config.json under --layout, or a file. Throws UsageError.
step::Step step_of(const std::string& which, const Arguments& arguments);

// Throws UsageError with the first finding: what is wrong has no calls.
void refuse_wrong(const step::Step& step);

int show_step(const step::Step& step, const Arguments& arguments, const Console& console);
int verify_step(const step::Step& step, const Console& console);
int simulate_step(const step::Step& step, const Arguments& arguments, const Console& console);

}  // namespace unisono::cli
