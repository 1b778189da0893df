// Programs of other executors as operands of commands.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parsed.h"
#include "cli/failure.h"
#include "executors/flaw.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// Reads a file. Throws UsageError "file:line: what is wrong"; `format`, for --to, names a way to
// see a valid file.
template <typename Program>
Program program_of_file(const std::string& path, const std::string& text, Parsed<Program> parsed,
                        std::string_view format) {
  if (!parsed) {
    throw UsageError(
        fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message), {},
        fmt::format("unisono export all_reduce/ring -n 4 --to {} shows the format", format));
  }
  return std::move(*parsed.value);
}

// Returns the schedule that `convert` makes of a file with a program of `kind`. Throws UsageError
// if the proof finds an error, or if a schedule cannot express the program.
Schedule schedule_of_file(const std::string& path, std::string_view kind,
                          const std::vector<executors::Flaw>& flaws,
                          const std::function<Schedule()>& convert);

}  // namespace unisono::cli
