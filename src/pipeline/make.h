// Makes an order of a pipeline for stages with different times, under a memory limit: starts from
// the best catalogue entries and greedy orders, and improves them by moving tasks on the critical
// path.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/parsed.h"
#include "pipeline/pipeline.h"

namespace unisono::pipeline {

struct MakeOptions {
  double most_bytes = std::numeric_limits<double>::infinity();  // on each rank
  std::uint64_t seed = 0;
  // The most computations that may be timed in total; a thousand million take some seconds of a
  // CPU.
  double work = 5e8;
};

struct Made {
  Pipeline pipeline = {};     // verified; with the least capacity that delays nothing
  double makespan = 0;        // as reported by run()
  double bound = 0;           // no order is faster: a rank waits for its first F, and does its work
  std::string from = {};      // the entry or rule that the search began with
  double start_makespan = 0;  // its time
  std::string best_entry = {};  // of the catalogue, within the limit; empty: none
  double best_entry_makespan = 0;
};

// `frame` gives stages, ranks, chains, costs, memory, lanes and microbatches. Its actions, if any,
// are one of the orders to start from; actions on whole stages are done once, around the stage's
// computations. The result is never worse than any catalogue entry with the same stages that keeps
// the limit. The same arguments give the same order. Fails if no order within the limit is found.
Parsed<Made> make(const Pipeline& frame, const MakeOptions& options = {});

}  // namespace unisono::pipeline
