// Files of other executors as what the commands are asked about.
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

// What was read of a file. Throws UsageError "file:line: what is wrong"; `format`, for --to, says
// how to see one that is right.
template <typename Program>
Program program_of_file(const std::string& path, const std::string& text, Parsed<Program> parsed,
                        std::string_view format) {
  if (!parsed) {
    throw UsageError(
        fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message), {},
        fmt::format("unisono export all_reduce/ring -n 4 --to {} shows the form", format));
  }
  return std::move(*parsed.value);
}

// What `convert` makes of a file, a `kind` of program. Throws UsageError where its proof found
// something, or where `convert` finds that a schedule has no words for it.
Schedule schedule_of_file(const std::string& path, std::string_view kind,
                          const std::vector<executors::Flaw>& flaws,
                          const std::function<Schedule()>& convert);

}  // namespace unisono::cli
