// Small programs: their passes one after the other, with no state but the number of the next one.
// This is the path of the short messages, where every nanosecond counts.
#pragma once

#include <vector>

#include "engine/execution.h"

namespace unisono::engine {

// REQUIRES: the operation has a small program.
Progress poll_small(Execution& run) noexcept;
std::vector<Wait> small_waits(const Execution& run);

}  // namespace unisono::engine
