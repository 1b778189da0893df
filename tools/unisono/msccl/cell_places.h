// The positions of a schedule's chunks in the buffers of a program's GPUs.
#pragma once

#include <map>
#include <vector>

#include "msccl/program.h"
#include "schedule/cells.h"

namespace unisono::msccl {

// Chunks of a move that are contiguous in every buffer in which they are read or written.
struct MovePiece {
  BufferPlace source = {};
  BufferPlace target = {};
  BufferPlace before = {};  // the place of the target's value before a reducing move
  int chunks = 1;
};

// The schedule must outlive this object.
class CellPlaces {
 public:
  explicit CellPlaces(const Schedule& schedule);

  // Returns the number of chunks that a rank keeps in scratch.
  int scratch_chunks(int rank) const;
  BufferPlace of(const Cell& cell) const;
  std::vector<MovePiece> pieces_of(const Move& move) const;
  // Returns true if some move writes the cell.
  bool is_written(const Cell& cell) const;

 private:
  MovePiece piece_of(const Move& move, int chunk) const;

  const Schedule& schedule_;
  FirstWrites first_writes_;
  std::vector<std::map<int, int>> slots_;  // by rank: chunk -> place in scratch
};

}  // namespace unisono::msccl
