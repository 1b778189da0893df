// Kills a process at a step of its own: at one of the system calls that it makes between two marks.
// What other processes can see of it changes with these and with its writes to shared memory, so to
// kill it at each of them is to kill it at each state.
#pragma once

#include <sys/types.h>

#include <string>

namespace unisono::testing {

// Why no process can be traced here, as in a container that forbids it; empty: it can.
std::string why_not_traced();

// In the process that is to die: all that its thread does until mark_end() are steps.
// Throws resource where it cannot be traced.
void mark_begin();
void mark_end();

// In its parent: lets it run to the mark, and kills it before its `step`-th step, from 1 on; or at
// its second mark, if it makes fewer. Calls that it repeats while it waits are one step.
struct Kill {
  int steps = 0;     // that it made
  std::string what;  // the call that it was not to make: "sendmsg"; "end": its second mark
};
// Throws resource where it cannot be traced.
Kill kill_at_step(pid_t process, int step);

}  // namespace unisono::testing
