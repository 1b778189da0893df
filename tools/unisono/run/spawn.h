// Starts processes that cannot outlive this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

struct SpawnOptions {
  std::vector<std::string> program;
  std::vector<std::string> environment;  // "NAME=value" sets or replaces, "NAME" removes
  std::vector<int> cpus = {};            // the CPUs that it may use; empty: those of its parent
  bool own_group = true;                 // leads a process group, so that its children die with it
  bool keeps_stdin = false;              // true: inherits stdin; otherwise stdin is /dev/null or
  int input = -1;                        // this descriptor
};

struct Spawned {
  pid_t pid = -1;
  int out = -1;  // read ends, non-blocking
  int err = -1;
};

// Throws UsageError if the program cannot be started, Error(resource) if the system refuses a
// process.
Spawned spawn(const SpawnOptions& options);

// Writes to a pipe that a child reads. If the child no longer reads, nothing happens, and no
// SIGPIPE is raised. Returns the number of bytes written, which may be less than all if the pipe
// does not block.
std::size_t tell_child(int pipe, std::string_view text);

// Returns the CPUs that this process may use, in ascending order.
std::vector<int> allowed_cpus();
// Returns the CPUs of one rank, ascending: one for each of its threads that moves data.
std::vector<int> share_of_cpus(const std::vector<int>& allowed, int rank, int ranks, int threads);

// A process that kills the registered process groups when this process ends in any way, even by
// SIGKILL.
class ChildGuard {
 public:
  ChildGuard();
  ~ChildGuard();
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;
  void watch(pid_t group);
  void forget(pid_t group);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

// Kills and reaps every process that has become a child of this process, except `spared`.
void kill_orphans(const std::vector<pid_t>& spared);

}  // namespace unisono::cli
