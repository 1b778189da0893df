#include "executors/program_file.h"

#include "unisono/error.hpp"

namespace unisono::cli {

Schedule schedule_of_file(const std::string& path, std::string_view kind,
                          const std::vector<executors::Flaw>& flaws,
                          const std::function<Schedule()>& convert) {
  if (!flaws.empty()) {
    throw UsageError(fmt::format("{} is not a valid {}", path, kind), to_text(flaws.front()),
                     fmt::format("unisono verify {}", path));
  }
  try {
    return convert();
  } catch (const Error& error) {
    throw UsageError(fmt::format("{} cannot be expressed as a schedule", path),
                     std::string(error.summary()), std::string(error.hint()));
  }
}

}  // namespace unisono::cli
