// Cells: the places that moves read and write. The proofs use them; code that runs a schedule may
// use them too.
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

// Returns a key that is dense and unique within a schedule.
std::uint64_t cell_key(const Schedule& schedule, Cell cell);

// Returns the output chunk of `rank` that occupies the memory of `input_chunk` in a call in place,
// or -1 if there is none. If `rank` has the chunk both as input and as output, this is the same
// chunk. In all_to_all, block d of the output occupies the memory of block d of the input, so the
// result is the chunk that rank d sends to `rank`. A barrier has no buffers.
int chunk_in_place(const Schedule& schedule, int rank, int input_chunk);

// The step in which each cell is first written. Reads before this step, and in it, yield the input.
class FirstWrites {
 public:
  explicit FirstWrites(const Schedule& schedule);

  // Returns -1 if no move writes the cell.
  int step(Cell cell) const;
  // Returns the cell that a read in `step` really reads: the input if nothing has been written yet.
  Cell read_through(Cell cell, int step) const;

 private:
  const Schedule& schedule_;
  std::vector<int> dense_;  // by cell_key(), where that takes little memory
  std::unordered_map<std::uint64_t, int> sparse_;
};

}  // namespace unisono
