#include "cli/asked_schedule.h"

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/target.h"

namespace unisono::cli {

Schedule asked_schedule(const Arguments& arguments, std::string_view command) {
  if (arguments.operands().empty()) {
    throw UsageError("which schedule?", fmt::format("unisono {} all_reduce/ring -n 4", command),
                     "unisono list");
  }
  const std::string& target = arguments.operands().front();
  if (!is_schedule_file(target)) {
    const Algorithm& algorithm = algorithm_of(target);
    const int ranks = static_cast<int>(arguments.number("ranks", 1, kMostShownRanks));
    const int root = static_cast<int>(arguments.number("root", 0, ranks - 1));
    return build_checked(
        algorithm, {.ranks = ranks, .root = root, .parameters = parameters_of(algorithm, target)});
  }
  for (const std::string_view option : {"ranks", "root"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} does not go with a schedule file", option),
                       fmt::format("{} says it already", target),
                       fmt::format("unisono help {}", command));
    }
  }
  return load_schedule(target);
}

}  // namespace unisono::cli
