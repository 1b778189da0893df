// Measures the time of a collective.
//
// Calls are timed in batches: a barrier, then a batch of calls in a row, timed by each rank. The
// time of a batch is the time of the slowest rank, divided by the number of calls. `time` is the
// median over the batches, `p99` their 99th percentile. With --fresh a batch is one call; before
// each call, each rank writes its input again and reads its output, untimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::cli {

struct TimingOptions {
  int iterations = 0;  // 0: as many as fit in target_s
  int warmup = 0;      // 0: depends on the size
  double target_s = 0.2;
  int least_iterations = 3;  // even if they take longer
  bool fresh = false;
  bool brief = false;  // a call longer than target_s runs once or a few times; the fastest counts
};

struct CallTiming {
  double time_us = 0;
  double p99_us = 0;
  int iterations = 0;
  int batches = 1;
  // With few batches, the 99th percentile is only the longest batch.
  bool has_p99() const { return batches >= 20; }
};

// `call` is the operation; `refresh` rewrites the input and reads the output (--fresh only).
// Collective: every rank gets the same result.
CallTiming measure(Communicator& comm, const TimingOptions& options,
                   const std::function<void()>& call, const std::function<void()>& refresh);

// Returns the numbers of every rank, by rank, on every rank. `values` has the same size on all
// ranks.
std::vector<std::vector<double>> gather_numbers(Communicator& comm,
                                                const std::vector<double>& values);

}  // namespace unisono::cli
