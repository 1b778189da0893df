// A schedule: a collective algorithm as plain data, a list of moves between all ranks.
//
// A schedule belongs to (collective, ranks, root, chunk count), never to a byte count. The vector
// of a collective is cut into chunks with global names 0..chunks-1. Data is always named by its
// chunk, never by a position. The collective determines which rank has which chunk as input and
// must have it as output (`has_input`, `needs_output`):
//
//   collective       chunks            input                  output
//   broadcast        any C             root: all              every rank: all
//   reduce           any C             every rank: all        root: all
//   all_reduce       any C             every rank: all        every rank: all
//   scatter          n*k               root: all              rank r: its group [r*k, (r+1)*k)
//   gather           n*k               rank r: its group      root: all
//   all_gather       n*k               rank r: its group      every rank: all
//   reduce_scatter   n*k               every rank: all        rank r: its group
//   all_to_all       n*n*k             rank s: (s,*)          rank d: (*,d)
//   scan             any C             every rank: all        every rank: all
//   exclusive_scan   any C             every rank: all        ranks 1 to n-1: all
//   barrier          1 (zero bytes)    every rank: its token  every rank: the token of every rank
//
// where chunk (s,d,j) of all_to_all is (s*n+d)*k+j. The token of a barrier may be reduced more than
// once, because it only states that a rank has arrived.
//
// The v-forms have the layout of their plain forms, with explicit chunk sizes at run time, and use
// the same schedules. A schedule of all_to_all may carry the counts of one call of all_to_all_v.
// Code that draws, proves or simulates such a schedule treats it as the exchange of that call. Code
// that runs it uses the counts of its own call.
//
// A cell is (rank, buffer, chunk). Buffers: `input` (never written), `output`, `scratch`. If no
// earlier step has written an output or scratch cell, the cell *reads as the rank's input* of that
// chunk, if the rank has one. So an algorithm that works in place on its vector needs no copy of
// the input first. If no move writes an output cell that must hold the rank's own input, the engine
// fills the cell. A reducing move computes target = target (+) source, where reading `target`
// follows the same rule.
//
// Steps order the moves: within a step all reads come before all writes. The engine keeps only the
// true data dependencies of this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/collectives.h"
#include "base/move_code.h"
#include "schedule/counts.h"

namespace unisono {

enum class Buffer : std::uint8_t { input, output, scratch };
enum class Combine : std::uint8_t { replace, reduce };

struct Move {
  int step = 0;
  int from = 0;
  int to = 0;     // from == to: a local copy or reduction
  int chunk = 0;  // first chunk
  int chunks = 1;
  Buffer source = Buffer::output;  // on `from`
  Buffer target = Buffer::output;  // on `to`
  Combine combine = Combine::replace;
  std::uint32_t line = 0;  // source line that made it; 0 unknown
  // The code that represents the f32 elements while they are sent (roundings.h). A local move with
  // a code rounds, also in place. Files and the catalogue contain no such moves.
  MoveCode code = MoveCode::none;

  friend bool operator==(const Move&, const Move&) = default;
};

struct Phase {
  std::string name;
  int first_step = 0;
};

struct Schedule {
  Collective collective = Collective::barrier;
  std::string algorithm = {};  // catalogue name, or the user's
  int ranks = 1;
  int root = 0;  // 0 for collectives without one
  int chunks = 1;
  int steps = 0;
  std::string file = {};  // source file of the moves' lines
  std::vector<Phase> phases = {};
  std::vector<Move> moves = {};  // sorted by step; within a step in the order they were added
  Counts counts = {};            // of the one call that it is for; empty: of any, with equal blocks
};

struct RankRange {
  int first = 0;
  int count = 0;

  bool has(int rank) const { return rank >= first && rank < first + count; }
};

// Return the ranks that have a chunk as input, and the ranks that must have it as output.
RankRange input_ranks(const Schedule& schedule, int chunk);
RankRange output_ranks(const Schedule& schedule, int chunk);
bool has_input(const Schedule& schedule, int rank, int chunk);
bool needs_output(const Schedule& schedule, int rank, int chunk);

// Returns the length of a chunk: in elements if the schedule has counts, otherwise 1. Piece i of p
// pieces of a block of several chunks is its elements [count*i/p, count*(i+1)/p).
std::int64_t length_of(const Schedule& schedule, int chunk);
std::int64_t length_of(const Schedule& schedule, const Move& move);

// Returns the collective that a user would call: the v-form if the schedule has counts.
Collective called_form(const Schedule& schedule);

// A move as the author of an algorithm writes it. An automatic target is the output if `to` needs
// the chunk as output, otherwise scratch. An automatic source is the output if `from` needs the
// chunk as output, otherwise scratch if an earlier step wrote it there, otherwise the input. If the
// chunks of a range have different places, the range is split into several moves.
struct MoveSpec {
  int from = 0;
  int to = 0;
  int chunk = 0;
  int chunks = 1;
  Combine combine = Combine::replace;
  enum class Place : std::uint8_t { automatic, input, output, scratch };
  Place source = Place::automatic;
  Place target = Place::automatic;
};

class ScheduleBuilder {
 public:
  struct Shape {
    int ranks = 1;
    int chunks = 1;
    int root = 0;
  };
  ScheduleBuilder(Collective collective, Shape shape,
                  std::source_location where = std::source_location::current());

  // Names the steps from the next step() on. A phase without moves is dropped.
  void phase(std::string name);
  void step();  // starts the next step
  // Adds a move to the current step; ignores a move without chunks. REQUIRES: ranks and chunks are
  // in range.
  void move(const MoveSpec& spec, std::source_location where = std::source_location::current()) {
    move_of_line(spec, where.line());
  }
  // For builders in other languages, whose line numbers refer to a file of their own.
  void move_of_line(const MoveSpec& spec, std::uint32_t line);
  void in_file(std::string name) { schedule_.file = std::move(name); }
  Schedule build() &&;  // drops empty trailing steps

 private:
  Buffer resolve_source(const MoveSpec& spec, int chunk) const;
  Buffer resolve_target(const MoveSpec& spec, int chunk) const;
  std::size_t cell(int rank, int chunk) const;
  // Returns true if all chunks of the rank have the same place and this place is not scratch.
  bool is_output_whole(int rank, MoveSpec::Place place) const;

  Schedule schedule_;
  int step_ = -1;
  std::unordered_map<std::size_t, int> scratch_written_;  // cell -> first step that wrote it
};

}  // namespace unisono
