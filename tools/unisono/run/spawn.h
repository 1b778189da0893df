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
  std::vector<std::string> environment;  // "NAME=value" sets or replaces, "NAME" takes away
  std::vector<int> cpus = {};            // the only ones it may use; empty: as its parent
  bool own_group = true;                 // leads a process group, so that its children die with it
  bool keeps_stdin = false;              // otherwise /dev/null, or
  int input = -1;                        // this descriptor
};

struct Spawned {
  pid_t pid = -1;
  int out = -1;  // read ends, non-blocking
  int err = -1;
};

// Throws UsageError where the program cannot be started, Error(resource) where the system refuses.
Spawned spawn(const SpawnOptions& options);

// Writes to a pipe that a child reads, or no longer reads: then it does nothing, and no SIGPIPE
// comes. Returns how much is told: of a pipe that does not block maybe not all.
std::size_t tell_child(int pipe, std::string_view text);

// CPUs that this process may use, ascending.
std::vector<int> allowed_cpus();
// Returns the CPUs of one rank, ascending: one for each of its threads that moves data.
std::vector<int> share_of_cpus(const std::vector<int>& allowed, int rank, int ranks, int threads);

// A process that kills the groups it was told of when this process ends in any way, SIGKILL
// included.
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

// Kills and reaps every process that has become a child of this one, but those.
void kill_orphans(const std::vector<pid_t>& spared);

}  // namespace unisono::cli
