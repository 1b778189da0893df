#include "bootstrap/end_reason.h"

#include <algorithm>
#include <array>

namespace unisono::comm {
namespace {

// Other launchers, and that of another host, leave no reason.
constexpr std::string_view kStopped =
    "with SIGTERM a launcher ends the ranks that are left when another one has failed: look for "
    "that one first";

// By a signal that a launcher sends, or nobody knows how.
bool may_be_launchers(const EndReason& end) {
  constexpr std::array<std::string_view, 4> kHow = {"killed by SIGTERM", "killed by SIGINT",
                                                    "killed by SIGKILL", "exited or was killed"};
  return end.by_its_closing || std::any_of(kHow.begin(), kHow.end(), [&end](std::string_view how) {
           return end.how.ends_with(how);
         });
}

}  // namespace

std::string EndReasonReader::end_and_advice(const EndReason& end, std::string_view advice) const {
  if (may_be_launchers(end)) {
    const JobLog log = log_.read();
    if (log.reason.starts_with(kEndedByLauncher) &&
        !log.reason.starts_with(ended_after(end.process))) {
      return log.reason + "\n" + log.advice;
    }
  }
  return end.how + "\n" + std::string(end.how == "killed by SIGTERM" ? kStopped : advice);
}

}  // namespace unisono::comm
