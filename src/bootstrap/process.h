// Queries the kernel about another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace unisono::comm {

// Returns a descriptor that becomes readable when the process has ended; empty if the kernel has
// none.
UniqueFd open_process(pid_t pid);
bool has_ended(const UniqueFd& process, int wait_ms);

// Returns "killed by SIGKILL" or "exited with code 3"; "exited or was killed" if the kernel does
// not report it.
std::string how_it_ended(pid_t pid, const UniqueFd& process);

// As above for a process that has just begun to end; empty if the kernel does not report it yet.
std::string how_it_is_ending(pid_t pid);

// Returns the start time of the process in clock ticks since boot; empty if it is gone or a zombie.
// Together with the pid it identifies a process for all time.
std::optional<std::uint64_t> start_of(pid_t pid);

// Returns true if SIGSTOP or a debugger has stopped the process.
bool is_stopped(pid_t pid);

// Returns the CPUs that the calling thread may use.
std::vector<int> allowed_cpus();

}  // namespace unisono::comm
