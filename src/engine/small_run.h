// Small programs: their passes run one after another, and the number of the next pass is the only
// state. This is the path of short messages, where every nanosecond counts.
#pragma once

#include <vector>

#include "engine/execution.h"

namespace unisono::engine {

// REQUIRES: the operation has a small program.
Progress poll_small(Execution& run) noexcept;
std::vector<Wait> small_waits(const Execution& run);

}  // namespace unisono::engine
