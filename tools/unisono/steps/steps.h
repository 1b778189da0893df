// The parts of `unisono step`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "step/step.h"
#include "step/training_task.h"

namespace unisono::cli {

// Returns the step of a model (by name or config.json) under --layout, or of a file. Throws
// UsageError. Keys of a config.json that are not understood are reported on stderr.
step::Step step_of(const std::string& which, const Arguments& arguments, const Console& console);

// Reads --train, "8x32" (sequences, and tokens of each), and --with. Throws UsageError.
step::TrainingTask training_task(const Arguments& arguments);

// Reads a file of unisono.step/1. Throws UsageError.
step::Step load_step(const std::string& path);

// Returns unisono.step_show/1 with the findings of the proof; without calls if there are findings.
nlohmann::ordered_json step_page_data(const step::Step& step);

// Throws UsageError with the first finding, because an invalid step has no calls.
void refuse_wrong(const step::Step& step);

int show_step(const step::Step& step, const Arguments& arguments, const Console& console);
int verify_step(const step::Step& step, const Console& console);
int simulate_step(const step::Step& step, const Arguments& arguments, const Console& console);

}  // namespace unisono::cli
