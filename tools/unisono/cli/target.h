// The operand of `show` and `verify`: a catalogue entry ("all_reduce/ring") or a schedule file.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/catalog.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// Throws UsageError that suggests the nearest collective.
Collective collective_of(std::string_view word);

// Returns whether the operand is a path: it has a dot or names an existing file.
bool is_schedule_file(const std::string& target);

// Parses "all_reduce/ring"; throws UsageError that suggests the nearest name.
const Algorithm& algorithm_of(std::string_view target);

// Returns the parameters in "broadcast/knomial:radix=4"; throws UsageError.
AlgorithmParameters parameters_of(const Algorithm& algorithm, std::string_view target);

// Throws UsageError if the algorithm does not support the shape.
Schedule build_checked(const Algorithm& algorithm, Shape shape);

// Reads unisono.schedule/1, MSCCL's XML if the name ends in ".xml", or a plan of MSCCL++, which is
// recognised by its content. Throws UsageError "file:line: what is wrong".
Schedule load_schedule(const std::string& path);
// Like the above; also throws UsageError if the schedule is invalid.
Schedule load_verified_schedule(const std::string& path);

// Returns "all_reduce/ring", or only the collective if the algorithm has no name; uses the name of
// the v-form if the schedule has counts.
std::string title_of(const Schedule& schedule);

}  // namespace unisono::cli
