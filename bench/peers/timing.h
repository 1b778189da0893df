// Times a call in the same way for every library.
#pragma once

#include <functional>
#include <vector>

#include "peers/control.h"

namespace unisono::bench {

struct Timing {
  double budget_ms = 60.0;  // approximate total time of a row's timed calls
  bool fresh = true;
};

struct Samples {
  std::vector<double> call_us;  // per batch: the slowest rank's time per call
  std::uint32_t calls_per_batch = 1;
};

// Returns a quantile, 0 <= q <= 1. Reorders `values`.
double quantile(std::vector<double>& values, double q);

// Called on every rank. Only rank 0 returns complete samples.
//
// If timing.fresh is set, `refresh` rewrites the input and reads the output before each call; then
// all ranks start together, and the call is timed alone. Otherwise a batch of back-to-back calls is
// timed as a whole.
Samples time_calls(Control& control, int rank, int size, const Timing& timing,
                   const std::function<void()>& call, const std::function<void()>& refresh);

}  // namespace unisono::bench
