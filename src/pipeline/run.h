// Plays a pipeline event by event: when each action starts and ends, and where every rank stands if
// they wait for each other.
//
// A rank does its actions in order. A send or receive is put into the queue of its lane and the
// rank goes on; a computation waits for the receive that brings its input. A queue does one
// transfer after the other: a send leaves when the lane has room, a receive ends when its message
// is there. An overlap begins when the inputs of all its parts are there, takes as long as they
// take one after the other, and has all results at its end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

inline constexpr int kUnlimited = std::numeric_limits<int>::max();

struct RunOptions {
  int capacity = -1;  // -1: what the pipeline declares; kUnlimited
  std::uint64_t seed = 0;
  double jitter = 0;  // a computation takes up to this share longer or shorter
  int slow_stage = -1;
  double slow_factor = 1;
};

struct Span {
  double start = -1;  // below 0: not reached
  double end = -1;
};

// Why a rank has not come to its end.
struct Waiting {
  int rank = 0;
  std::size_t action =
      0;                  // the index where the rank stands; the number of actions if it is through
  int peer = -1;          // the rank that it waits for; -1: nobody can help
  std::size_t head = 0;   // the transfer at the front of its queue to the peer
  bool has_head = false;  // false: the transfer that it needs is not in the queue at all
};

struct Run {
  double makespan = 0;
  std::vector<std::vector<Span>> spans = {};  // of each rank and action
  std::vector<double> busy = {};              // of each rank: time in computations
  std::vector<Waiting> waiting = {};          // empty: all ranks came to their end

  bool finished() const { return waiting.empty(); }
};

// REQUIRES: check() passes.
Run run(const Pipeline& pipeline, const RunOptions& options = {});

}  // namespace unisono::pipeline
