// Lets a waiting thread ask whether to continue (ConnectOptions::interrupted), which may be slow,
// such as a check of Python's signals.
#pragma once

#include <functional>

namespace unisono {

inline constexpr int kAskMs = 100;

// Asks `question` at most so often, and says no in between; none for none.
std::function<bool()> ten_times_a_second(std::function<bool()> question);

}  // namespace unisono
