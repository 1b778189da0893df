// Handles Ctrl-C while an operation waits in C++.
//
// Python handles signals only when C++ code returns, and a wait for a peer may take long. Waits
// therefore check whether Ctrl-C has been pressed, end the world if so, and leave the rest to
// Python.
#pragma once

#include <chrono>

namespace unisono_signals {

// Interval at which waits check for Ctrl-C.
inline constexpr std::chrono::milliseconds kAskEvery{100};

// Returns true on the thread in which Python runs signal handlers.
bool is_main_thread();
// Returns true if Python will raise KeyboardInterrupt. Always returns false on threads other than
// the main thread, which cannot be interrupted. Acquires the GIL.
bool is_interrupted();
// Throws a pending KeyboardInterrupt or the pending exception of another signal handler. Called
// before a failed operation throws its own error.
void throw_if_interrupted();

}  // namespace unisono_signals
