// A program: what one rank does for a schedule, as a list of passes with their true dependencies.
//
// There are two kinds of pass. A *compute* pass reads one or more sources (own buffers, incoming
// messages) and writes own buffers: a receive, a receive with reduction, an n-ary reduction or a
// local copy. A *send* pass puts one own cell range into an outgoing lane. Both work through their
// bytes from front to back, so one pass may follow another segment by segment.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace unisono::engine {

enum class OperandPlace : std::uint8_t { input, output, scratch, lane };

struct Operand {
  OperandPlace place = OperandPlace::input;
  int lane = -1;     // incoming lane of a compute pass's source, outgoing lane of a send's target
  int ordinal = -1;  // which message of that lane
  bool single = false;  // a source that holds one rank's contribution: nothing was added to it yet
};

struct Dependency {
  int pass = 0;
  bool whole = false;    // wait for all of it, not only for the bytes before mine
  bool drained = false;  // its readers must be done as well: I overwrite what it shows to them
};

struct Pass {
  int step = 0;
  int chunk = 0;
  int chunks = 1;
  bool send = false;
  std::vector<Operand> sources = {};  // in the order of reduction; a send has one, never a lane
  std::vector<Operand> targets = {};  // a send has one lane; a compute pass one or more own buffers
  std::vector<Dependency> waits = {};
  // Sends of just what this compute pass writes: they may be served in the same sweep, from the
  // same registers.
  std::vector<int> forwards = {};
  // The target is scratch that only the forwards read: a segment that all of them took needs no
  // memory.
  bool transient = false;
  // A send whose readers may look at its source where it is. Not if the source is overwritten while
  // a reader may still wait for this very rank: two ranks that swap in place would each keep the
  // other from going on.
  bool may_share = true;
  // Its messages are encoded, of those it sends or those that come; a pass without any rounds what
  // it copies. The blocks of codes begin with the pass.
  MoveCode code = MoveCode::none;
};

// A compute pass that encodes and decodes what it copies.
bool rounds(const Pass& pass);

struct Program {
  Collective collective = Collective::barrier;
  int rank = 0;
  int ranks = 1;
  int chunks = 1;
  std::vector<Pass> passes = {};
  std::vector<bool> scratch = {};  // [chunk]: has a scratch cell on this rank
  bool encoded = false;            // some moves of the schedule are, maybe of other ranks
};

struct LowerOptions {
  bool multicast = true;
  bool in_place = false;   // input and output cells of a chunk are the same memory
  bool contiguous = true;  // neighbouring chunks are neighbours in memory: ranges may be coalesced
};

// REQUIRES: the schedule is verified.
Program lower(const Schedule& schedule, int rank, const LowerOptions& options);

}  // namespace unisono::engine
