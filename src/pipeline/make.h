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
  // The most computations that may be timed in total; 1e9 take some seconds of CPU time.
  double work = 5e8;
};

struct Made {
  Pipeline pipeline = {};       // verified, with the least capacity that delays nothing
  double makespan = 0;          // as reported by run()
  double bound = 0;             // a lower bound on the time of any order
  std::string from = {};        // catalogue entry or rule from which the search began
  double start_makespan = 0;    // time of that start
  std::string best_entry = {};  // fastest catalogue entry within the limit; empty: none
  double best_entry_makespan = 0;
};

// `frame` provides stages, ranks, chains, costs, memory, lanes and microbatches. If it has actions,
// they are one of the starting orders. Actions on whole stages are done once, around the stage's
// computations. The result is never worse than any catalogue entry that has the same stages and
// keeps the limit. Equal arguments give equal orders. Fails if no order within the limit is found.
Parsed<Made> make(const Pipeline& frame, const MakeOptions& options = {});

}  // namespace unisono::pipeline
