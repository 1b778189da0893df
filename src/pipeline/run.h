// Plays a pipeline event by event, to find when each action starts and ends. If ranks deadlock,
// finds where each of them is blocked.
//
// A rank does its actions in order. It puts a send or receive into the queue of its lane and
// continues; a computation waits for the receive of its input. A queue does one transfer at a time.
// A send leaves when the lane has room, and a receive ends when its message has arrived. An overlap
// begins when the inputs of all its parts are available, takes as long as the parts in sequence,
// and has all results at its end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

inline constexpr int kUnlimited = std::numeric_limits<int>::max();

struct RunOptions {
  int capacity = -1;  // -1: the capacity that the pipeline declares; or kUnlimited
  std::uint64_t seed = 0;
  double jitter = 0;  // a computation takes longer or shorter by up to this share
  int slow_stage = -1;
  double slow_factor = 1;
};

struct Span {
  double start = -1;  // negative: not reached
  double end = -1;
};

// The reason why a rank has not finished.
struct Waiting {
  int rank = 0;
  std::size_t action = 0;  // index where the rank is blocked; number of actions if finished
  int peer = -1;           // the rank that it waits for; -1: no rank can help
  std::size_t head = 0;    // the transfer at the front of its queue to the peer
  bool has_head = false;   // false: the transfer that it needs is not in the queue
};

struct Run {
  double makespan = 0;
  std::vector<std::vector<Span>> spans = {};  // by rank and action
  std::vector<double> busy = {};              // by rank: time in computations
  std::vector<Waiting> waiting = {};          // empty: all ranks have finished

  bool finished() const { return waiting.empty(); }
};

// REQUIRES: check() passes.
Run run(const Pipeline& pipeline, const RunOptions& options = {});

}  // namespace unisono::pipeline
