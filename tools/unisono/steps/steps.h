// The parts of `unisono step`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "step/step.h"
#include "step/training_task.h"

namespace unisono::cli {

// A model by name or config.json under --layout, or a file. Throws UsageError.
// What a config.json says and is not understood is told on stderr.
step::Step step_of(const std::string& which, const Arguments& arguments, const Console& console);

// Reads --train, "8x32" (sequences, and tokens of each), and --with. Throws UsageError.
step::TrainingTask training_task(const Arguments& arguments);

// Reads a file of unisono.step/1. Throws UsageError.
step::Step load_step(const std::string& path);

// unisono.step_show/1 with the findings of the proof; without calls where there are some.
nlohmann::ordered_json step_page_data(const step::Step& step);

// Throws UsageError with the first finding: what is wrong has no calls.
void refuse_wrong(const step::Step& step);

int show_step(const step::Step& step, const Arguments& arguments, const Console& console);
int verify_step(const step::Step& step, const Console& console);
int simulate_step(const step::Step& step, const Arguments& arguments, const Console& console);

}  // namespace unisono::cli
