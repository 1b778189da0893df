// Makes an order of a pipeline for stages that take different times, under a limit of memory:
// starts from the best of the catalogue's entries and of greedy orders, and betters that by moving
// what the longest path of waiting goes through.
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
  // How many computations may be timed in all; a thousand million take some seconds of a CPU.
  double work = 5e8;
};

struct Made {
  Pipeline pipeline = {};  // right; with the least capacity that delays nothing
  double makespan = 0;     // as run() says
  double bound = 0;        // no order takes less: a rank waits for its first F, and does its work
  std::string from = {};   // the entry or rule that the search began with
  double start_makespan = 0;    // what that took
  std::string best_entry = {};  // of the catalogue, within the limit; empty: none is
  double best_entry_makespan = 0;
};

// `frame` says stages, ranks, chains, costs, memory, lanes and microbatches; its actions are one of
// the orders to start from, if there are any; what they do on whole stages is done once, around the
// computations of the stage. Never worse than any entry of the catalogue that has
// the same stages and keeps the limit. The same arguments give the same order. Fails where no order
// within the limit is found.
Parsed<Made> make(const Pipeline& frame, const MakeOptions& options = {});

}  // namespace unisono::pipeline
