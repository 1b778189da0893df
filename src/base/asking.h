// Limits how often a waiting thread calls ConnectOptions::interrupted. This function may be slow:
// in Python it checks for signals.
#pragma once

#include <functional>

namespace unisono {

inline constexpr int kAskMs = 100;

// Wraps `question` so that it runs at most ten times a second; in between, the wrapper returns
// false. Returns nullptr for nullptr.
std::function<bool()> ten_times_a_second(std::function<bool()> question);

}  // namespace unisono
