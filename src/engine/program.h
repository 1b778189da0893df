// A program: the work of one rank in a schedule, as a list of passes with their true dependencies.
//
// There are two kinds of passes. A *compute* pass reads one or more sources (own buffers, incoming
// messages) and writes own buffers: it is a receive, a receive with reduction, an n-ary reduction,
// or a local copy. A *send* pass puts one range of own cells into an outgoing lane. Both process
// their bytes from front to back, so one pass may follow another segment by segment.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace unisono::engine {

enum class OperandPlace : std::uint8_t { input, output, scratch, lane };

struct Operand {
  OperandPlace place = OperandPlace::input;
  int lane = -1;        // incoming for a compute pass's source, outgoing for a send's target
  int ordinal = -1;     // index of the message in that lane
  bool single = false;  // a source that holds one rank's contribution: nothing was added to it yet
};

struct Dependency {
  int pass = 0;
  bool whole = false;    // wait for all of it, not only for the bytes before mine
  bool drained = false;  // its readers must be done too: this pass overwrites memory they read
};

struct Pass {
  int step = 0;
  int chunk = 0;
  int chunks = 1;
  bool send = false;
  std::vector<Operand> sources = {};  // in the order of reduction; a send has one, never a lane
  std::vector<Operand> targets = {};  // a send has one lane; a compute pass one or more own buffers
  std::vector<Dependency> waits = {};
  // Sends whose data is exactly the output of this compute pass. They can be served in the same
  // sweep, from the same registers.
  std::vector<int> forwards = {};
  // True if the target is scratch that only the forwards read. A segment that all forwards took
  // needs no memory.
  bool transient = false;
  // True for a send whose readers may read its source directly. False if the source is overwritten
  // while a reader may still wait for this very rank: two ranks that swap data in place would block
  // each other.
  bool may_share = true;
  // The code of the pass's outgoing or incoming messages. A pass without messages rounds the data
  // that it copies. The blocks of the code begin at the start of the pass.
  MoveCode code = MoveCode::none;
};

// Returns true for a compute pass that encodes and decodes the data that it copies.
bool rounds(const Pass& pass);

struct Program {
  Collective collective = Collective::barrier;
  int rank = 0;
  int ranks = 1;
  int chunks = 1;
  std::vector<Pass> passes = {};
  std::vector<bool> scratch = {};  // [chunk]: has a scratch cell on this rank
  bool encoded = false;            // some moves of the schedule are, perhaps of other ranks
};

struct LowerOptions {
  bool multicast = true;
  bool in_place = false;   // input and output cells of a chunk are the same memory
  bool contiguous = true;  // neighbouring chunks are adjacent: ranges may be coalesced
};

// REQUIRES: the schedule is verified.
Program lower(const Schedule& schedule, int rank, const LowerOptions& options);

}  // namespace unisono::engine
