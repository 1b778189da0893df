// Plays a pipeline event by event: when each action starts and ends, and where every rank is
// blocked if they wait for each other.
//
// A rank does its actions in order. A send or receive is put into the queue of its lane and the
// rank continues; a computation waits for the receive of its input. A queue does one transfer after
// the other: a send leaves when the lane has room, a receive ends when its message is there. An
// overlap begins when the inputs of all its parts are there, takes as long as they take one after
// the other, and has all results at its end.
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

// Why a rank has not finished.
struct Waiting {
  int rank = 0;
  std::size_t action = 0;  // index where the rank is blocked; number of actions if finished
  int peer = -1;           // the rank that it waits for; -1: no rank can help
  std::size_t head = 0;    // the transfer at the front of its queue to the peer
  bool has_head = false;   // false: the transfer that it needs is not in the queue
};

struct Run {
  double makespan = 0;
  std::vector<std::vector<Span>> spans = {};  // for each rank and action
  std::vector<double> busy = {};              // for each rank: time in computations
  std::vector<Waiting> waiting = {};          // empty: all ranks have finished

  bool finished() const { return waiting.empty(); }
};

// REQUIRES: check() passes.
Run run(const Pipeline& pipeline, const RunOptions& options = {});

}  // namespace unisono::pipeline
