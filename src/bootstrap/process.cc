#include "bootstrap/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/private.h"

namespace unisono::comm {
namespace {

// Newer kernels keep the exit status of a process behind its pidfd, even after its parent has
// reaped it. The headers of older systems lack this structure.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::array<std::uint32_t, 11> ids;
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kPidfdInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

// Returns the fields of /proc/PID/stat after the name, which may contain spaces and parentheses;
// [0] is the state.
std::vector<std::string> stat_of(pid_t pid) {
  const UniqueFd file(
      ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> text;
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  std::vector<std::string> fields;
  if (got <= 0) {
    return fields;
  }
  const std::string all(text.data(), static_cast<std::size_t>(got));
  const auto name_end = all.rfind(')');
  if (name_end == std::string::npos) {
    return fields;
  }
  std::istringstream rest(all.substr(name_end + 1));
  for (std::string field; rest >> field;) {
    fields.push_back(field);
  }
  return fields;
}

std::optional<int> status_of(const std::vector<std::string>& stat) {
  constexpr std::size_t kExitCode = 49;
  return stat.size() > kExitCode ? std::optional(std::stoi(stat[kExitCode])) : std::nullopt;
}

std::optional<int> wait_status(pid_t pid, const UniqueFd& process) {
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (process && ::ioctl(process.get(), kPidfdGetInfo, &info) == 0 &&
      (info.mask & kPidfdInfoExit) != 0) {
    return info.exit_code;
  }
  // The process is not reaped yet.
  const auto fields = stat_of(pid);
  return !fields.empty() && fields[0] == "Z" ? status_of(fields) : std::nullopt;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return std::string("killed by ") + (name != nullptr
                                            ? std::string("SIG") + name
                                            : "signal " + std::to_string(WTERMSIG(status)));
  }
  return WIFEXITED(status) ? "exited with code " + std::to_string(WEXITSTATUS(status))
                           : "exited or was killed";
}

}  // namespace

UniqueFd open_process(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(const UniqueFd& process, int wait_ms) {
  pollfd entry{process.get(), POLLIN, 0};
  return process && ::poll(&entry, 1, wait_ms) > 0;
}

std::string how_it_ended(pid_t pid, const UniqueFd& process) {
  // For a moment, a process is no longer a zombie but not yet reaped, and the kernel gives no
  // answer.
  auto status = wait_status(pid, process);
  for (int again = 0; !status && again < 5; ++again) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    status = wait_status(pid, process);
  }
  return status ? describe(*status) : "exited or was killed";
}

// The exit code becomes visible while the process ends, as soon as the kernel has it. 0 may mean
// that the kernel does not have it yet.
std::string how_it_is_ending(pid_t pid) {
  const auto status = status_of(stat_of(pid));
  return status.value_or(0) != 0 ? describe(*status) : std::string();
}

std::optional<std::uint64_t> start_of(pid_t pid) {
  const auto fields = stat_of(pid);
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") {
    return std::nullopt;
  }
  return std::stoull(fields[19]);
}

bool is_stopped(pid_t pid) {
  const auto fields = stat_of(pid);
  return !fields.empty() && (fields[0] == "T" || fields[0] == "t");
}

UNISONO_PRIVATE std::vector<int> allowed_cpus() {
  constexpr int kSets = 8;  // 8192 CPUs, more than a kernel supports
  std::array<cpu_set_t, kSets> sets{};
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(sets), sets.data()) == 0) {
    for (int cpu = 0; cpu < kSets * CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof(sets), sets.data())) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

}  // namespace unisono::comm
