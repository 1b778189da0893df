// What the kernel tells about another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace unisono::comm {

// A readable descriptor once the process has ended. Empty if the kernel gives none.
UniqueFd open_process(pid_t pid);
bool has_ended(const UniqueFd& process, int wait_ms);

// "killed by SIGKILL", "exited with code 3"; "exited or was killed" if the kernel does not say.
std::string how_it_ended(pid_t pid, const UniqueFd& process);

// The same of a process that has just begun to end; empty if the kernel does not say yet.
std::string how_it_is_ending(pid_t pid);

// When the process started, in clock ticks since boot; empty if it is gone or a zombie. With the
// pid it names a process for ever.
std::optional<std::uint64_t> start_of(pid_t pid);

// By SIGSTOP, or by a debugger.
bool is_stopped(pid_t pid);

// The CPUs that the calling thread may use.
std::vector<int> allowed_cpus();

}  // namespace unisono::comm
