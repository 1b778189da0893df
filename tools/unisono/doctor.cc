// `unisono doctor`: checks that ranks can work together here. One line per check, with the fix if
// it fails.
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/wrap.h"
#include "device/devices.h"
#include "kernels/kernels.h"
#include "run/spawn.h"
#include "transport/networks.h"
#include "transport/shm/segment.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {
namespace {

struct Check {
  std::string name;
  bool passed = false;
  std::string found;       // what was seen
  std::string fix;         // what to do if it failed
  bool is_absent = false;  // an optional part that this host does not have
};

std::string status_of(const Check& check) {
  return !check.passed ? "FAIL" : check.is_absent ? "none" : "pass";
}

constexpr int kProbeTimeout = 10'000;  // ms

Check check_memfd() {
  const int fd = ::memfd_create("unisono-doctor", MFD_CLOEXEC);
  const bool grown = fd >= 0 && ::ftruncate(fd, 1 << 20) == 0;
  const std::string why = grown ? "works" : std::strerror(errno);
  if (fd >= 0) {
    ::close(fd);
  }
  return {"shared memory (memfd)", grown, why,
          "memfd_create needs Linux 3.17 and a seccomp profile that allows it"};
}

Check check_futex() {
  std::uint32_t word = 1;
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  const bool works = result == -1 && errno == EAGAIN;
  return {"sleeping (futex)", works, works ? "works" : std::strerror(errno),
          "allow futex in the seccomp profile"};
}

Check check_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool works = commands >= 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  return {"cheap fences (membarrier)", works,
          works          ? "works"
          : commands < 0 ? std::strerror(errno)
                         : "no global_expedited",
          "without it waiting ranks poll more often: needs Linux 4.16 and a seccomp profile that "
          "allows membarrier"};
}

// A child that waits until it is killed.
class Child {
 public:
  explicit Child(const std::function<int()>& body) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::_exit(body());
    }
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_ = -1;
};

int sleep_for_ever() {
  ::pause();
  return 0;
}

Check check_pidfd() {
  const Child child(sleep_for_ever);
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0));
  const std::string why = fd >= 0 ? "works" : std::strerror(errno);
  bool seen = false;
  if (fd >= 0) {
    ::kill(child.pid(), SIGKILL);
    pollfd poll = {.fd = fd, .events = POLLIN, .revents = 0};
    seen = ::poll(&poll, 1, 1000) == 1;
    ::close(fd);
  }
  return {"detecting ended ranks (pidfd)", seen, why,
          "needs Linux 5.3 and a seccomp profile that allows pidfd_open"};
}

// Tries to read this process from a child, as ranks read each other; ranks are not parents of each
// other. Ranks can run without it, so this check never fails.
Check check_reading() {
  const std::uint64_t value = 0x756e69736f6e6f;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    std::uint64_t found = 0;
    const auto address = reinterpret_cast<std::uint64_t>(&value);
    const bool read = shm::read_process(parent, address, &found, sizeof(found)) == sizeof(found);
    ::_exit(read && found == value ? 0 : 1);
  }
  int status = 0;
  const bool works = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                     WEXITSTATUS(status) == 0;
  return {"reading ranks (process_vm_readv)", true,
          works ? "works"
                : "not allowed: long messages are copied once more (kernel.yama.ptrace_scope is "
                  "above 0, or a seccomp profile forbids it)",
          ""};
}

Check check_cpus() {
  const std::size_t allowed = allowed_cpus().size();
  const auto variable = read_env("LOCAL_WORLD_SIZE");
  const std::size_t ranks =
      variable ? static_cast<std::size_t>(std::max(1, std::atoi(variable->c_str()))) : 1;
  // A rank of `unisono run` may use only the CPU that it was bound to.
  const bool enough =
      ranks <= std::max(allowed, static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  return {"CPUs", enough,
          fmt::format("{} allowed, {} rank{} here", allowed, ranks, ranks == 1 ? "" : "s"),
          "ranks share CPUs: results are correct, but slower; start fewer ranks"};
}

// Returns the name that the processor's maker uses, because the kernels' library has different
// names for AVX-512.
std::string vector_instructions(const std::string& target) {
  return target.starts_with("AVX3") ? "AVX-512" : target;
}

Check check_simd() {
  const std::string target = kernels::target_name();
  const bool vector =
      target.find("SCALAR") == std::string::npos && target.find("EMU128") == std::string::npos;
  return {"vector instructions", vector, vector_instructions(target),
          "reductions run without SIMD on this CPU"};
}

Check check_variables() {
  const std::vector<std::string> warnings = unknown_env_warnings();
  return {"UNISONO_* variables", warnings.empty(),
          warnings.empty() ? "all known" : fmt::format("{}", fmt::join(warnings, "; ")),
          "unisono env lists those that exist"};
}

// Fails only if the environment requires this network.
Check check_network(const transport::NetworkTraits& network) {
  const bool asked = read_env("UNISONO_NETWORK") == network.name;
  Check check{fmt::format("{} between hosts", network.title), !asked, "",
              fmt::format("{}, see {}", network.install, network.setting)};
  if (const std::string why = network.why_not(); !why.empty()) {
    check.found = why + "; TCP works without it";
    check.is_absent = true;
    return check;
  }
  try {
    const std::vector<std::string> devices = network.devices();
    check.passed = !asked || !devices.empty();
    check.is_absent = devices.empty();
    check.found =
        fmt::format("{} {}{}: {}", network.title, network.version(),
                    asked ? "" : fmt::format(", used with UNISONO_NETWORK={}", network.name),
                    devices.empty() ? "no devices" : fmt::format("{}", fmt::join(devices, ", ")));
  } catch (const Error& error) {
    check.found = error.what();
  }
  return check;
}

// Fails only if the environment names a driver.
Check check_devices() {
  const bool asked = read_env("UNISONO_CUDA").has_value();
  Check check{"collectives on GPU memory", true, "",
              "install NVIDIA's driver, or unset UNISONO_CUDA"};
  if (const std::string why = device::why_no_devices(); !why.empty()) {
    check.passed = !asked;
    check.found = why + "; host memory works without it";
    check.is_absent = true;
    return check;
  }
  check.found = fmt::format("{}", fmt::join(device::devices(), ", "));
  return check;
}

// Runs a rank of the probe; the text of its error goes to `report`.
int probe_rank(int rank, const std::string& job, const std::string& token, int report) {
  try {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job;
    options.token = token;
    options.connect_timeout_ms = kProbeTimeout / 2;
    options.timeout_ms = kProbeTimeout / 2;
    Communicator comm = Communicator::connect(options);
    std::array<int, 3> data = {rank + 1, 10 * (rank + 1), -rank};
    comm.all_reduce(std::span<int>(data), sum);
    return data == std::array<int, 3>{3, 30, -1} ? 0 : 1;
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    [[maybe_unused]] const ssize_t written = ::write(report, text.data(), text.size());
    return 1;
  }
}

Check check_ranks() {
  int ends[2];
  if (::pipe(ends) != 0) {
    return {"two ranks can communicate", false, std::strerror(errno), "ulimit -n"};
  }
  const std::string job = fmt::format("doctor-{}", ::getpid());
  const std::string token = fmt::format("doctor-token-{:016}", ::getpid());
  std::array<pid_t, 2> ranks = {};
  for (int rank = 0; rank < 2; ++rank) {
    ranks[static_cast<std::size_t>(rank)] = ::fork();
    if (ranks[static_cast<std::size_t>(rank)] == 0) {
      ::close(ends[0]);
      ::_exit(probe_rank(rank, job, token, ends[1]));
    }
  }
  ::close(ends[1]);
  // The pipe ends when both ranks have ended.
  std::string report;
  std::array<char, 512> block;
  pollfd poll = {.fd = ends[0], .events = POLLIN, .revents = 0};
  bool in_time = true;
  for (;;) {
    in_time = ::poll(&poll, 1, 2 * kProbeTimeout) == 1;
    const ssize_t got = in_time ? ::read(ends[0], block.data(), block.size()) : 0;
    if (got <= 0) {
      break;
    }
    report.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  bool right = in_time;
  for (const pid_t pid : ranks) {
    if (!in_time) {
      ::kill(pid, SIGKILL);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    right = right && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const std::string found = right            ? "all_reduce of two processes is correct"
                            : !in_time       ? "no answer in time"
                            : report.empty() ? "wrong data, or a rank died"
                                             : report.substr(0, report.find('\n'));
  return {"two ranks can communicate", right, found,
          "see the lines above; a firewall is not the reason, because no network is used"};
}

void print_text(const std::vector<Check>& checks, const Console& console) {
  for (const Check& check : checks) {
    const Paint paint = !check.passed ? Paint::bad : check.is_absent ? Paint::dim : Paint::good;
    const std::string text =
        labelled(fmt::format("{:<4}  {:<34}  ", "", check.name), check.found, console.width());
    fmt::print("{:<4}{}", console.paint(paint, status_of(check)), text.substr(4));
    if (!check.passed) {
      fmt::print("{}", labelled("      fix: ", check.fix, console.width()));
    }
  }
}

void print_json(const std::vector<Check>& checks, bool passed) {
  nlohmann::ordered_json result;
  result["schema"] = "unisono.doctor/1";
  result["version"] = UNISONO_VERSION;
  result["passed"] = passed;
  result["checks"] = nlohmann::json::array();
  for (const Check& check : checks) {
    result["checks"].push_back({{"name", check.name},
                                {"passed", check.passed},
                                {"absent", check.is_absent},
                                {"found", check.found},
                                {"fix", check.passed ? "" : check.fix}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int run_doctor(const Arguments&, const Console& console) {
  std::vector<Check> checks = {{"version", true, fmt::format("unisono {}", UNISONO_VERSION), {}},
                               check_memfd(),
                               check_futex(),
                               check_membarrier(),
                               check_pidfd(),
                               check_reading(),
                               check_cpus(),
                               check_simd(),
                               check_variables(),
                               check_ranks(),
                               // Runs last, because it may leave threads and signal handlers.
                               check_devices()};
  for (const transport::NetworkTraits& network : transport::networks().subspan(1)) {
    checks.push_back(check_network(network));
  }
  const bool passed =
      std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
  if (console.json()) {
    print_json(checks, passed);
  } else {
    print_text(checks, console);
  }
  return passed ? kDone : kAnswerIsNo;
}

}  // namespace

const Command kDoctorCommand = {
    .name = "doctor",
    .summary = "check that ranks can work together on this host",
    .operands = "",
    .max_operands = 0,
    .runs_program = false,
    .examples = {{{"unisono doctor", "Run every check, and print what to do if one fails."},
                  {"unisono doctor --json", "The same as JSON."},
                  {"unisono run -n 1 -- unisono doctor", "Check what a rank sees."}}},
    .description =
        "Each line is a check: pass; none for an optional part that this host does not have, such "
        "as a GPU; or FAIL with the fix. /dev/shm is not checked: unisono's shared memory has no "
        "name there, and its size does not matter. Exit code 0: all checks passed; 1: one failed.",
    .options = {},
    .run = run_doctor};

}  // namespace unisono::cli
