// Measures the limit of an all_reduce on this machine: two threads that access all buffers.
#pragma once

#include <cstddef>
#include <string>

#include "peers/timing.h"

namespace unisono::bench {

struct Limit {
  double median_us = 0.0;
  std::string variant;  // fastest variant
};

// Two threads on two CPUs sum `ranks` f32 vectors of `bytes` bytes into `ranks` outputs. Returns
// the fastest variant: flagged cache lines, staged, halves, or halves with streaming stores.
Limit all_reduce_limit(const std::string& directory, std::size_t bytes, int ranks,
                       const Timing& timing);

}  // namespace unisono::bench
