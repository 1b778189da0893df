// Plays a schedule, and tracks which ranks' data is in every chunk on every rank. It is independent
// of verify(), and continues if a schedule is wrong, in order to show it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace unisono::cli {

// Returns the number of ranks' contributions that one chunk can hold: all ranks if the collective
// combines, one if it only moves data.
int contributors(const Schedule& schedule);

// Returns the rank whose data the chunk contains. REQUIRES: contributors() == 1.
int origin_of(const Schedule& schedule, int chunk);

class Provenance {
 public:
  explicit Provenance(const Schedule& schedule);

  // Bytes that an instance needs.
  static std::uint64_t cost_bytes(const Schedule& schedule);

  // Performs the moves of the next step.
  void advance();

  // Returns the number of times that each contributor is in the rank's copy of the chunk: the last
  // written buffer, or its input.
  std::span<const std::uint8_t> shown(int rank, int chunk) const;
  // Returns true if the chunk has the result that the collective requires.
  bool is_whole(int rank, int chunk) const;
  // Returns the number of pairs (rank, chunk) that must be whole at the end.
  std::int64_t needed() const;
  std::int64_t whole() const;

  // Returns the moves of one step.
  static std::span<const Move> moves_of(const Schedule& schedule, int step);

 private:
  using Counts = std::vector<std::uint8_t>;
  std::size_t cell(int rank, Buffer buffer, int chunk) const;
  std::span<const std::uint8_t> read(int rank, Buffer buffer, int chunk) const;
  std::span<const std::uint8_t> at(std::size_t cell) const;

  const Schedule* schedule_;
  int width_;
  int step_ = 0;
  Counts counts_;                     // cell-major, `width_` entries each
  std::vector<bool> written_;         // by cell
  std::vector<Buffer> last_written_;  // by rank * chunks + chunk; input: none
};

}  // namespace unisono::cli
