// One operation of all ranks as passes over memory that every rank can address: what the programs
// of the ranks (engine/program.h) become where a lane needs no bytes of its own.
//
// A message is *pulled*: its receiver reads the cell of its sender; or *pushed*: the sum that it
// carries is written by its sender into the receiver's cell, in the pass that makes the sum, where
// nobody else can still need that cell; or *staged*: its sender copies it aside first. What remains
// of lanes are counts: a pass waits until another rank has made so many of its passes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout.h"
#include "engine/program.h"
#include "schedule/schedule.h"

namespace unisono::device {

struct GraphCell {
  int rank = 0;
  engine::OperandPlace place = engine::OperandPlace::input;  // never a lane
  int index = 0;                                             // the chunk; of scratch the slot
  friend bool operator==(const GraphCell&, const GraphCell&) = default;
};

struct After {
  int rank = 0;
  int passes = 0;  // of that rank that must have been made
};

struct GraphPass {
  int chunk = 0;
  int step = 0;
  std::vector<GraphCell> sources = {};
  std::vector<GraphCell> targets = {};
  std::vector<After> waits = {};  // of other ranks
  std::uint64_t signals = 0;      // a bit for each rank that waits for it
  bool finish = false;            // makes a whole sum
};

struct RankGraph {
  std::vector<GraphPass> passes = {};
  std::vector<After> exit = {};  // before its memory is its own again
};

struct Graph {
  std::vector<RankGraph> ranks = {};
  int slots = 0;   // of scratch, on each rank
  int pushed = 0;  // messages
  int pulled = 0;
  int staged = 0;
};

struct GraphOptions {
  bool in_place = false;
  bool direct = true;  // inputs and outputs can be addressed by the others; otherwise all is staged
};

// REQUIRES: the schedule is verified; at most kMaxRanks ranks.
Graph build_graph(const Schedule& schedule, const GraphOptions& options);

}  // namespace unisono::device
