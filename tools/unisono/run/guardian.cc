// Ensures that no process of a job is left behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "run/spawn.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

constexpr pid_t kEndInPeace = 0;
constexpr std::size_t kMostGroups = 4096;

// Reads numbers from the pipe: a positive number adds a process group, a negative one removes it,
// and kEndInPeace ends the guardian without killing. If the pipe ends without kEndInPeace, the
// launcher has died.
[[noreturn]] void guard(int pipe) {
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    ::signal(signal, SIG_IGN);
  }
  // Closes inherited descriptors, so that the launcher's pipes and terminal can be closed.
  ::dup2(pipe, STDIN_FILENO);
  ::close_range(1, ~0U, 0);
  std::array<pid_t, kMostGroups> groups = {};
  std::size_t count = 0;
  pid_t message = 0;
  while (::read(STDIN_FILENO, &message, sizeof(message)) == static_cast<ssize_t>(sizeof(message))) {
    if (message == kEndInPeace) {
      ::_exit(0);
    }
    if (message > 0 && count < groups.size()) {
      groups[count++] = message;
    }
    for (std::size_t i = 0; message < 0 && i < count; ++i) {
      if (groups[i] == -message) {
        groups[i] = groups[--count];
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    ::kill(-groups[i], SIGKILL);
  }
  ::_exit(0);
}

void tell(int pipe, pid_t message) {
  [[maybe_unused]] const ssize_t written = ::write(pipe, &message, sizeof(message));
}

}  // namespace

ChildGuard::ChildGuard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::resource,
                "cannot make a pipe\nraise the limit of open files (ulimit -n)");
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ends[1]);
    guard(ends[0]);
  }
  ::close(ends[0]);
  pipe_ = ends[1];
  if (pid_ < 0) {
    ::close(pipe_);
    throw Error(ErrorCode::resource,
                "cannot start a process\nraise the limit of processes (ulimit -u)");
  }
  // Orphaned processes of the ranks become children of this process, where kill_orphans() finds
  // them.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ChildGuard::~ChildGuard() {
  tell(pipe_, kEndInPeace);
  ::close(pipe_);
  ::waitpid(pid_, nullptr, 0);
}

void ChildGuard::watch(pid_t group) {
  tell(pipe_, group);
}

void ChildGuard::forget(pid_t group) {
  tell(pipe_, -group);
}

void kill_orphans(const std::vector<pid_t>& spared) {
  // Repeats this, because the children of a killed process become children of this process.
  for (int round = 0; round < 100; ++round) {
    std::ifstream children("/proc/thread-self/children");
    bool any = false;
    pid_t child = 0;
    while (children >> child) {
      if (std::find(spared.begin(), spared.end(), child) == spared.end()) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        any = true;
      }
    }
    if (!any) {
      return;
    }
  }
}

}  // namespace unisono::cli
