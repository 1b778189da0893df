// Reading a schedule from a file.
#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "cli/failure.h"
#include "cli/target.h"
#include "msccl/verify_file.h"
#include "schedule/json.h"
#include "schedule/verify.h"

namespace unisono::cli {
namespace {

constexpr std::uintmax_t kLargestFile = 1'000'000'000;

}  // namespace

std::string read_schedule_file(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw UsageError(fmt::format("{} is a folder, not a schedule", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(fmt::format("cannot read {}", path), "no such file, or no permission",
                     "unisono list says which schedules need no file");
  }
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargestFile) {
      throw UsageError(fmt::format("{} is too large for a schedule", path),
                       fmt::format("more than {} bytes", kLargestFile));
    }
  }
  return text;
}

Schedule load_schedule(const std::string& path) {
  const std::string text = read_schedule_file(path);
  if (is_msccl_file(path)) {
    return load_msccl_schedule(path, text);
  }
  Parsed<Schedule> parsed = parse_schedule_json(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono show all_reduce/ring -n 4 --json shows the form");
  }
  return std::move(*parsed.value);
}

Schedule load_verified_schedule(const std::string& path) {
  Schedule schedule = load_schedule(path);
  if (const std::vector<Finding> findings = verify(schedule); !findings.empty()) {
    throw UsageError(fmt::format("{} is no right schedule", path), to_text(findings.front()),
                     fmt::format("unisono verify {}", path));
  }
  return schedule;
}

}  // namespace unisono::cli
