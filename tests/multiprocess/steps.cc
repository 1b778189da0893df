#include "steps.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::testing {
namespace {

struct Name {
  std::uint64_t number = 0;
  const char* text = "";
};
// With these calls it notifies other processes, or creates what it shares with them.
constexpr std::array<Name, 12> kTelling = {{{SYS_sendmsg, "sendmsg"},
                                            {SYS_sendto, "sendto"},
                                            {SYS_write, "write"},
                                            {SYS_writev, "writev"},
                                            {SYS_connect, "connect"},
                                            {SYS_accept4, "accept4"},
                                            {SYS_bind, "bind"},
                                            {SYS_listen, "listen"},
                                            {SYS_shutdown, "shutdown"},
                                            {SYS_socketpair, "socketpair"},
                                            {SYS_memfd_create, "memfd_create"},
                                            {SYS_clone3, "clone3"}}};

const char* telling(std::uint64_t number) {
  const auto found = std::find_if(kTelling.begin(), kTelling.end(),
                                  [number](const Name& name) { return name.number == number; });
  return found == kTelling.end() ? nullptr : found->text;
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::resource, what + ": " + std::strerror(errno));  // NOLINT
}

// Continues until the next stop; returns its signal. -1: the process has ended.
int await_stop(pid_t process) {
  int status = 0;
  if (::waitpid(process, &status, 0) != process) {
    fail("a process that is traced cannot be waited for");
  }
  return WIFSTOPPED(status) ? WSTOPSIG(status) : -1;
}

// The steps of a rank; a repeated call without a new report does not count.
class Steps {
 public:
  bool is_new(std::uint64_t number, std::uint64_t argument) {
    if (telling(number) != nullptr) {
      made_.clear();
      return true;
    }
    return made_.insert({number, argument}).second;
  }

 private:
  std::set<std::pair<std::uint64_t, std::uint64_t>> made_;
};

// Returns false if the system does not report it.
bool get_call(pid_t process, __ptrace_syscall_info& info) {
  return ::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof(info), &info) > 0;
}

}  // namespace

std::string why_not_traced() {
  const pid_t process = ::fork();
  if (process == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
      ::_exit(1);
    }
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  if (process < 0 || await_stop(process) != SIGSTOP) {
    return "no process can be traced here (PTRACE_TRACEME)";
  }
  __ptrace_syscall_info info = {};
  const bool is_known = get_call(process, info);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  return is_known ? "" : "the calls of a process are not told here (PTRACE_GET_SYSCALL_INFO)";
}

void mark_begin() {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    fail("this process cannot be traced");
  }
  ::raise(SIGSTOP);
}

void mark_end() {
  ::raise(SIGSTOP);
}

Kill kill_at_step(pid_t process, int step) {
  constexpr int kCall = SIGTRAP | 0x80;
  if (await_stop(process) != SIGSTOP ||
      ::ptrace(PTRACE_SETOPTIONS, process, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) {
    fail("a process cannot be traced");
  }
  Kill kill;
  Steps steps;
  for (int signal = 0;;) {
    if (::ptrace(PTRACE_SYSCALL, process, nullptr, signal) != 0) {
      fail("a process that is traced does not go on");
    }
    const int stop = await_stop(process);
    if (stop < 0 || stop == SIGSTOP) {
      kill.what = stop < 0 ? "its own end" : "end";
      break;
    }
    signal = stop == kCall ? 0 : stop;
    __ptrace_syscall_info info = {};
    if (stop == kCall && get_call(process, info) && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
        steps.is_new(info.entry.nr, info.entry.args[0]) && ++kill.steps == step) {
      const char* const name = telling(info.entry.nr);
      kill.what = name == nullptr ? "call " + std::to_string(info.entry.nr) : name;
      break;
    }
  }
  ::kill(process, SIGKILL);
  return kill;
}

}  // namespace unisono::testing
