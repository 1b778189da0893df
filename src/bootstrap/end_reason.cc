#include "bootstrap/end_reason.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/deadline.h"

namespace unisono::comm {
namespace {

// Used for other launchers and for launchers on another host, which leave no reason.
constexpr std::string_view kStopped =
    "a launcher sends SIGTERM to the remaining ranks when another rank has failed: look for that "
    "rank first";

// Returns true if the end may be a launcher's work: a signal that launchers send, or an unknown
// cause.
bool may_be_launchers(const EndReason& end) {
  constexpr std::array<std::string_view, 4> kHow = {"killed by SIGTERM", "killed by SIGINT",
                                                    "killed by SIGKILL", "exited or was killed"};
  return end.by_its_closing || std::any_of(kHow.begin(), kHow.end(), [&end](std::string_view how) {
           return end.how.ends_with(how);
         });
}

// Time limit of the wait until a launcher has noticed an end. This takes one process switch, unless
// the launcher is stopped.
constexpr int kVerdictMs = 1000;
// The same limit after a closed connection, whose process may still live.
constexpr int kClosedVerdictMs = 300;
constexpr int kSignalMs = 1000;  // between a launcher's announcement and its signal
constexpr std::chrono::milliseconds kLookPause(1);

bool ends_process(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

}  // namespace

void await_signal_of_launcher(std::string_view reason) {
  if (reason.find(kEndedByLauncher) == std::string_view::npos) {
    return;
  }
  const int signal = reason.find("SIGINT") == std::string_view::npos ? SIGTERM : SIGINT;
  const Deadline end = Deadline::after_ms(kSignalMs);
  while (ends_process(signal) && !end.passed()) {
    std::this_thread::sleep_for(kLookPause);
  }
}

// Waits until the launcher has written to its log: the reason why it ends the job, which it writes
// before it ends any process, or else the process that has ended.
JobLog EndReasonReader::await_verdict(const EndReason& end) const {
  const Deadline until = Deadline::after_ms(end.by_its_closing ? kClosedVerdictMs : kVerdictMs);
  for (;;) {
    JobLog log = log_.read();
    const bool is_known = log.ranks <= 0 || !log.reason.empty() || log.ends.contains(end.process);
    if (is_known || until.passed()) {
      return log;
    }
    std::this_thread::sleep_for(kLookPause);
  }
}

std::string EndReasonReader::end_and_advice(const EndReason& end, std::string_view advice) const {
  if (may_be_launchers(end)) {
    const JobLog log = await_verdict(end);
    if (log.reason.starts_with(kEndedByLauncher) &&
        !log.reason.starts_with(ended_after(end.process))) {
      return log.reason + "\n" + log.advice;
    }
  }
  return end.how + "\n" + std::string(end.how == "killed by SIGTERM" ? kStopped : advice);
}

}  // namespace unisono::comm
