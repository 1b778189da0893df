// One operation of all ranks as passes over memory that every rank can address. It is made from the
// ranks' programs (engine/program.h), for lanes that need no bytes of their own.
//
// A message is *pulled*: its receiver reads the sender's cell; or *pushed*: its sender writes the
// sum into the receiver's cell, in the pass that forms the sum, if nothing else can still need that
// cell; or *staged*: its sender first copies it aside. Only counts remain of the lanes: a pass
// waits until another rank has completed a number of its passes.
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
  int index = 0;                                             // the chunk; for scratch the slot
  friend bool operator==(const GraphCell&, const GraphCell&) = default;
};

struct After {
  int rank = 0;
  int passes = 0;  // number of that rank's passes that must be complete
};

struct GraphPass {
  int chunk = 0;
  int step = 0;
  std::vector<GraphCell> sources = {};
  std::vector<GraphCell> targets = {};
  std::vector<After> waits = {};  // for other ranks
  std::uint64_t signals = 0;      // a bit for each rank that waits for it
  bool finish = false;            // makes a whole sum
};

struct RankGraph {
  std::vector<GraphPass> passes = {};
  std::vector<After> exit = {};  // before its memory may be reused
};

struct Graph {
  std::vector<RankGraph> ranks = {};
  int slots = 0;   // of scratch, on each rank
  int pushed = 0;  // number of messages
  int pulled = 0;
  int staged = 0;
};

struct GraphOptions {
  bool in_place = false;
  bool direct = true;  // the others can address inputs and outputs; otherwise everything is staged
};

// REQUIRES: the schedule is verified; at most kMaxRanks ranks.
Graph build_graph(const Schedule& schedule, const GraphOptions& options);

}  // namespace unisono::device
