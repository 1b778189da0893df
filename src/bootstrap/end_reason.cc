#include "bootstrap/end_reason.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/env.h"
#include "base/unique_fd.h"

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

// Empty: there is no such launcher, or it lets the ranks run. A launcher that is no more may have
// left its number to a process with other files, so nothing that a read may wait for is read.
std::string read_reason(const std::string& path) {
  constexpr int kHarmless = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const UniqueFd file(path.empty() ? -1 : ::open(path.c_str(), kHarmless));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  std::array<char, kMostReasonBytes> text;
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::string reason(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return reason.starts_with(kEndedByLauncher) ? reason : std::string();
}

}  // namespace

EndReasonReader::EndReasonReader() : path_(read_env("UNISONO_LAUNCHER").value_or("")) {}

std::string EndReasonReader::end_and_advice(const EndReason& end, std::string_view advice) const {
  std::string reason = may_be_launchers(end) ? read_reason(path_) : std::string();
  if (!reason.empty() && !reason.starts_with(ended_after(end.process))) {
    return reason;
  }
  return end.how + "\n" + std::string(end.how == "killed by SIGTERM" ? kStopped : advice);
}

}  // namespace unisono::comm
