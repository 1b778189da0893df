#include "record/verdict.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace unisono::cli {

std::string duration_text(double us) {
  return us < 1000  ? fmt::format("{:.0f} us", us)
         : us < 1e6 ? fmt::format("{:.1f} ms", us / 1000)
                    : fmt::format("{:.1f} s", us / 1e6);
}

Text moment_text(double us) {
  constexpr double kCalendarUs =
      1e15;                         // 2001: an earlier time counts from the recording's beginning
  constexpr double kMostUs = 4e15;  // 2096
  if (us >= kCalendarUs && us < kMostUs) {
    const auto seconds = static_cast<std::time_t>(us / 1e6);
    return plain(fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(seconds)));
  }
  return say("{} after its beginning", "开始后 {}", duration_text(us));
}

std::string place_text(const JobCalls& job, const JobCall& call) {
  return call.place < 0 ? std::string()
                        : fmt::format(" ({})", job.names[static_cast<std::size_t>(call.place)]);
}

std::vector<Finding> verdict_of(const JobCalls& job) {
  const std::vector<JobMeeting> meetings = meetings_of(job);
  std::vector<Finding> findings = why_stuck(job, meetings);
  return findings.empty() ? why_slow(job, meetings) : findings;
}

}  // namespace unisono::cli
