#include "comm/launcher_words.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/env.h"
#include "comm/rendezvous_fd.h"

namespace unisono::comm {
namespace {

// Other launchers, and that of another host, leave no words.
constexpr std::string_view kStopped =
    "with SIGTERM a launcher ends the ranks that are left when another one has failed: look for "
    "that one first";

// Empty: there is no such launcher, or it lets the ranks run. A launcher that is no more may have
// left its number to a process with other files, so nothing that a read may wait for is read.
std::string launcher_words() {
  const std::string path = read_env("UNISONO_LAUNCHER").value_or("");
  const UniqueFd file(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  std::array<char, kMostLauncherWords> text;
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::string words(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return words.starts_with(kEndedByLauncher) ? words : std::string();
}

}  // namespace

std::string end_and_advice(const std::string& how, std::string_view advice) {
  const std::string words = launcher_words();
  if (!words.empty()) {
    return words;
  }
  return how + "\n" + std::string(how == "killed by SIGTERM" ? kStopped : advice);
}

}  // namespace unisono::comm
