// Ctrl-C while an operation waits in C++.
//
// Python handles a signal when C++ code returns to it, which a wait for a peer may not do for long.
// So waits ask whether Ctrl-C has been pressed, end the world if so, and leave the rest to Python.
#pragma once

namespace unisono_signals {

// The thread in which Python runs the handlers of signals.
bool is_main_thread();
// Whether Python is to raise KeyboardInterrupt. It interrupts the main thread alone; false in
// others. Takes Python's lock.
bool is_interrupted();
// What an operation that failed does before it throws its error: KeyboardInterrupt, or what another
// handler raises, goes first.
void throw_if_interrupted();

}  // namespace unisono_signals
