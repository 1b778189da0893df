// Cells: what a move reads and writes. Shared by the proofs, and of use to whoever runs a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedule/schedule.h"

namespace unisono {

struct Cell {
  int rank = 0;
  Buffer buffer = Buffer::output;
  int chunk = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

std::string_view to_string(Buffer buffer);

// Dense and unique within a schedule.
std::uint64_t cell_key(const Schedule& schedule, Cell cell);

// The output chunk of `rank` that lies on its input chunk when the call is in place, -1 if none
// does: the chunk itself where the rank has both; for all_to_all the chunk of the opposite
// direction, because block d of the output lies on block d of the input. A barrier has no buffers
// that could lie on each other.
int chunk_in_place(const Schedule& schedule, int rank, int input_chunk);

// The steps in which cells are first written. Before and in that step a cell reads as the input.
class FirstWrites {
 public:
  explicit FirstWrites(const Schedule& schedule);

  // -1 if no move writes it.
  int step(Cell cell) const;
  // Returns the cell that a read in `step` really reads: the input if nothing has been written yet.
  Cell read_through(Cell cell, int step) const;

 private:
  const Schedule& schedule_;
  std::vector<int> dense_;  // by cell_key(), where that takes little memory
  std::unordered_map<std::uint64_t, int> sparse_;
};

}  // namespace unisono
