// Reading a schedule from a file.
#include <fmt/format.h>

#include <vector>

#include "cli/failure.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "engine/verify_sizes.h"
#include "msccl/verify_file.h"
#include "mscclpp/json.h"
#include "mscclpp/verify_file.h"
#include "schedule/json.h"
#include "schedule/verify.h"

namespace unisono::cli {

Schedule load_schedule(const std::string& path) {
  const std::string text = read_text_file(path);
  if (is_msccl_file(path)) {
    return load_msccl_schedule(path, text);
  }
  if (mscclpp::is_plan(text)) {
    return load_plan_schedule(path, text);
  }
  Parsed<Schedule> parsed = parse_schedule_json(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono show all_reduce/ring -n 4 --json shows the format");
  }
  return std::move(*parsed.value);
}

Schedule load_verified_schedule(const std::string& path) {
  Schedule schedule = load_schedule(path);
  if (const std::vector<Finding> findings = engine::verify_with_sizes(schedule);
      !findings.empty()) {
    throw UsageError(fmt::format("{} is not a valid schedule", path), to_text(findings.front()),
                     fmt::format("unisono verify {}", path));
  }
  return schedule;
}

}  // namespace unisono::cli
