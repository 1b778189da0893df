// The operand of `show` and `verify`: a catalogue entry ("all_reduce/ring") or a schedule file.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/catalog.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// Throws UsageError with the nearest collective.
Collective collective_of(std::string_view word);

// A path: it has a dot or names an existing file.
bool is_schedule_file(const std::string& target);

// "all_reduce/ring"; throws UsageError with the nearest name.
const Algorithm& algorithm_of(std::string_view target);

// The parameters in "broadcast/knomial:radix=4"; throws UsageError.
AlgorithmParameters parameters_of(const Algorithm& algorithm, std::string_view target);

// Throws UsageError where the algorithm cannot serve the shape.
Schedule build_checked(const Algorithm& algorithm, Shape shape);

// Reads unisono.schedule/1, MSCCL's XML where the name ends in ".xml", or a plan of MSCCL++, which
// shows by what is in it. Throws UsageError "file:line: what is wrong".
Schedule load_schedule(const std::string& path);
// Throws UsageError also where it is not right.
Schedule load_verified_schedule(const std::string& path);

// "all_reduce/ring", or the collective alone where the algorithm has no name; the v-form where the
// schedule has counts.
std::string title_of(const Schedule& schedule);

}  // namespace unisono::cli
