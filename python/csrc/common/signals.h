// Ctrl-C while an operation waits in C++.
//
// Python handles a signal when C++ code returns to it, which a wait for a peer may not do for long.
// So waits ask whether Ctrl-C has been pressed, end the world if so, and leave the rest to Python.
#pragma once

#include <chrono>

namespace unisono_signals {

// The interval at which waits ask.
inline constexpr std::chrono::milliseconds kAskEvery{100};

// The thread in which Python runs the handlers of signals.
bool is_main_thread();
// Returns whether Python will raise KeyboardInterrupt. Only the main thread can be interrupted; on
// other threads returns false. Takes Python's lock.
bool is_interrupted();
// Called before a failed operation throws its error: throws KeyboardInterrupt, or the exception of
// another signal handler, if there is one.
void throw_if_interrupted();

}  // namespace unisono_signals
