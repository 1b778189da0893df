// Times a call, in the same way for every library.
#pragma once

#include <functional>
#include <vector>

#include "peers/control.h"

namespace unisono::bench {

struct Timing {
  double budget_ms = 60.0;  // about how long the timed calls of a row take together
  bool fresh = true;
};

struct Samples {
  std::vector<double> call_us;  // of each batch: the slowest rank's time, divided by its calls
  std::uint32_t calls_per_batch = 1;
};

// The quantile of `values`, 0 <= q <= 1; reorders them.
double quantile(std::vector<double>& values, double q);

// Runs on every rank; the samples are complete on rank 0 only.
//
// fresh: before each call `refresh` rewrites the input and reads the output, then all ranks start
// together and one call is timed. Not fresh: a batch of back-to-back calls is timed as one.
Samples time_calls(Control& control, int rank, int size, const Timing& timing,
                   const std::function<void()>& call, const std::function<void()>& refresh);

}  // namespace unisono::bench
