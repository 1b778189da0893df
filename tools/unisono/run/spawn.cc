#include "run/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/failure.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

[[noreturn]] void fail_resource(const char* what) {
  throw Error(
      ErrorCode::resource,
      fmt::format("cannot start a rank: {}: {}\ncheck the limits with ulimit -n and ulimit -u",
                  what, std::strerror(errno)));
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    fail_resource("pipe");
  }
  return {ends[0], ends[1]};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) {
    result.push_back(const_cast<char*>(word.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

// Returns the inherited environment with replacements.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& change : changes) {
      replaced = replaced || name_of(change) == name_of(*entry);
    }
    if (!replaced) {
      result.emplace_back(*entry);
    }
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    bool later = false;
    for (std::size_t j = i + 1; j < changes.size(); ++j) {
      later = later || name_of(changes[j]) == name_of(changes[i]);
    }
    if (!later && changes[i].find('=') != std::string::npos) {
      result.push_back(changes[i]);
    }
  }
  return result;
}

struct Ends {
  int out;
  int err;
  int failure;
};

// Runs between fork and exec, so it only makes system calls.
[[noreturn]] void become_rank(const SpawnOptions& options, char** program, char** environment,
                              Ends ends, pid_t parent) {
  if (options.own_group) {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(128 + SIGKILL);  // the launcher died before the line above
  }
  if (!options.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : options.cpus) {
      CPU_SET(static_cast<std::size_t>(cpu), &set);
    }
    ::sched_setaffinity(0, sizeof(set), &set);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGXFSZ, SIG_DFL);  // main() ignores it
  if (options.input >= 0) {
    ::dup2(options.input, STDIN_FILENO);
  } else if (!options.keeps_stdin) {
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO) {
      ::close(null);
    }
  }
  ::dup2(ends.out, STDOUT_FILENO);
  ::dup2(ends.err, STDERR_FILENO);
  ::execvpe(program[0], program, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(ends.failure, &reason, sizeof(reason));
  ::_exit(127);
}

[[noreturn]] void fail_exec(const std::string& program, int reason) {
  const bool missing = reason == ENOENT;
  throw UsageError(fmt::format("cannot start '{}': {}", program, std::strerror(reason)),
                   missing && program.find('/') == std::string::npos
                       ? fmt::format("it is not in PATH; a file in this folder is ./{}", program)
                       : std::string{},
                   "unisono help run");
}

}  // namespace

Spawned spawn(const SpawnOptions& options) {
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  const Pipe failure = make_pipe();
  const std::vector<std::string> environment = merged_environment(options.environment);
  const std::vector<char*> program_words = pointers(options.program);
  const std::vector<char*> environment_words = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_rank(options, const_cast<char**>(program_words.data()),
                const_cast<char**>(environment_words.data()),
                {out.write_end, err.write_end, failure.write_end}, parent);
  }
  const int fork_errno = errno;
  ::close(out.write_end);
  ::close(err.write_end);
  ::close(failure.write_end);
  int reason = 0;
  if (pid > 0 && options.own_group) {
    ::setpgid(pid, pid);
  }
  const ssize_t got = pid > 0 ? ::read(failure.read_end, &reason, sizeof(reason)) : 0;
  ::close(failure.read_end);
  if (pid < 0 || got > 0) {
    ::close(out.read_end);
    ::close(err.read_end);
    if (pid > 0) {
      ::waitpid(pid, nullptr, 0);
      fail_exec(options.program.front(), reason);
    }
    errno = fork_errno;
    fail_resource("fork");
  }
  ::fcntl(out.read_end, F_SETFL, O_NONBLOCK);
  ::fcntl(err.read_end, F_SETFL, O_NONBLOCK);
  return {.pid = pid, .out = out.read_end, .err = err.read_end};
}

std::size_t tell_child(int pipe, std::string_view text) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const ssize_t written = ::write(pipe, text.data(), text.size());
  const bool is_full = written < 0 && errno == EAGAIN;
  ::signal(SIGPIPE, before);
  return written >= 0 ? static_cast<std::size_t>(written) : is_full ? 0 : text.size();
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

std::vector<int> share_of_cpus(const std::vector<int>& allowed, int rank, int ranks, int threads) {
  std::vector<int> cpus;
  const std::size_t first =
      static_cast<std::size_t>(rank) * allowed.size() / static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(threads), allowed.size()); ++i) {
    cpus.push_back(allowed[(first + i) % allowed.size()]);
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

}  // namespace unisono::cli
