// The limit of an all_reduce on this machine: two threads that see all buffers.
#pragma once

#include <cstddef>
#include <string>

#include "peers/timing.h"

namespace unisono::bench {

struct Limit {
  double median_us = 0.0;
  std::string variant;  // the fastest way that was tried
};

// `ranks` vectors of `bytes` f32 are summed into `ranks` outputs by two threads on two CPUs;
// the best of: through flagged lines, staged, by halves, by halves with streaming stores.
Limit all_reduce_limit(const std::string& directory, std::size_t bytes, int ranks,
                       const Timing& timing);

}  // namespace unisono::bench
