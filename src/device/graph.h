// Represents one operation of all ranks as passes over memory that every rank can address. It is
// built from the ranks' programs (engine/program.h); lanes need no memory.
//
// A message is transferred in one of three ways:
// - pulled: the receiver reads the sender's cell;
// - pushed: the pass that forms the sum writes it to the receiver's cell, if no other pass needs
//   that cell;
// - staged: the sender first copies the data to scratch memory, and the receiver reads the copy.
// Lanes become counters: a pass waits until another rank has completed a number of its passes.
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
  int index = 0;                                             // chunk, or slot of scratch
  friend bool operator==(const GraphCell&, const GraphCell&) = default;
};

struct After {
  int rank = 0;
  int passes = 0;  // number of this rank's passes that must be complete
};

struct GraphPass {
  int chunk = 0;
  int step = 0;
  std::vector<GraphCell> sources = {};
  std::vector<GraphCell> targets = {};
  std::vector<After> waits = {};  // for other ranks
  std::uint64_t signals = 0;      // one bit per rank that waits for this pass
  bool finish = false;            // completes a sum
};

struct RankGraph {
  std::vector<GraphPass> passes = {};
  std::vector<After> exit = {};  // must complete before the memory may be reused
};

struct Graph {
  std::vector<RankGraph> ranks = {};
  int slots = 0;   // scratch slots per rank
  int pushed = 0;  // number of pushed messages
  int pulled = 0;
  int staged = 0;
};

struct GraphOptions {
  bool in_place = false;
  bool direct = true;  // other ranks can address inputs and outputs; false: all messages are staged
};

// REQUIRES: the schedule is verified; at most kMaxRanks ranks.
Graph build_graph(const Schedule& schedule, const GraphOptions& options);

}  // namespace unisono::device
