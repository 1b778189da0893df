// A program: the work of one rank in a schedule, as a list of passes with their true dependencies.
//
// There are two kinds of pass. A *compute* pass reads one or more sources (own buffers, incoming
// messages) and writes own buffers: a receive, a receive with reduction, an n-ary reduction or a
// local copy. A *send* pass puts one own cell range into an outgoing lane. Both process their bytes
// from front to back, so one pass may follow another segment by segment.
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
  // Sends of exactly what this compute pass writes: they can be served in the same sweep, from the
  // same registers.
  std::vector<int> forwards = {};
  // The target is scratch that only the forwards read: a segment that all of them took needs no
  // memory.
  bool transient = false;
  // A send whose readers may read its source directly. Not if the source is overwritten while a
  // reader may still wait for this very rank: two ranks that swap in place would block each other.
  bool may_share = true;
  // The encoding of its outgoing or incoming messages; a pass without messages rounds what it
  // copies. The blocks of codes begin with the pass.
  MoveCode code = MoveCode::none;
};

// Returns true for a compute pass that encodes and decodes what it copies.
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
