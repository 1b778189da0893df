// Kills a process at a step: at one of the system calls that it makes between two marks. The state
// that other processes see changes only with these calls and with its writes to shared memory, so a
// kill at each call covers each state.
#pragma once

#include <sys/types.h>

#include <string>

namespace unisono::testing {

// Returns why processes cannot be traced here, as in a container that forbids it; empty: they can.
std::string why_not_traced();

// In the process to be killed: every action of its thread until mark_end() is a step.
// Throws resource if the process cannot be traced.
void mark_begin();
void mark_end();

// In its parent: lets it run to the mark, and kills it before its `step`-th step, from 1 on; or at
// its second mark, if it makes fewer. Calls that it repeats while it waits are one step.
struct Kill {
  int steps = 0;     // that it made
  std::string what;  // the call that it did not make: "sendmsg"; "end": its second mark
};
// Throws resource if the process cannot be traced.
Kill kill_at_step(pid_t process, int step);

}  // namespace unisono::testing
