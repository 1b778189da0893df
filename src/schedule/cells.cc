#include "schedule/cells.h"

namespace unisono {

std::string_view to_string(Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      return "scratch";
  }
  return "";
}

std::uint64_t cell_key(const Schedule& schedule, Cell cell) {
  const auto row =
      static_cast<std::uint64_t>(cell.rank) * 3 + static_cast<std::uint64_t>(cell.buffer);
  return row * static_cast<std::uint64_t>(schedule.chunks) + static_cast<std::uint64_t>(cell.chunk);
}

int chunk_in_place(const Schedule& schedule, int rank, int input_chunk) {
  if (schedule.collective == Collective::barrier || !has_input(schedule, rank, input_chunk)) {
    return -1;
  }
  if (cut_of(schedule.collective) == VectorCut::pairs) {
    const int parts = schedule.chunks / (schedule.ranks * schedule.ranks);
    const int to = input_chunk / parts % schedule.ranks;
    return (to * schedule.ranks + rank) * parts + input_chunk % parts;
  }
  return needs_output(schedule, rank, input_chunk) ? input_chunk : -1;
}

FirstWrites::FirstWrites(const Schedule& schedule) : schedule_(schedule) {
  std::uint64_t writes = 0;
  for (const Move& move : schedule.moves) {
    writes += static_cast<std::uint64_t>(move.chunks);
  }
  constexpr std::uint64_t kMostCellsAWrite = 16;  // an entry of the map takes as much memory
  const std::uint64_t cells = cell_key(schedule, {.rank = schedule.ranks, .buffer = Buffer::input});
  if (cells <= kMostCellsAWrite * writes) {
    dense_.assign(cells, -1);
  }
  for (const Move& move : schedule.moves) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const std::uint64_t key = cell_key(schedule, {move.to, move.target, chunk});
      if (dense_.empty()) {
        sparse_.try_emplace(key, move.step);
      } else if (dense_[key] < 0) {
        dense_[key] = move.step;
      }
    }
  }
}

int FirstWrites::step(Cell cell) const {
  const std::uint64_t key = cell_key(schedule_, cell);
  if (!dense_.empty()) {
    return dense_[key];
  }
  const auto found = sparse_.find(key);
  return found == sparse_.end() ? -1 : found->second;
}

Cell FirstWrites::read_through(Cell cell, int at) const {
  const int written = step(cell);
  if (written < 0 || written >= at) {
    cell.buffer = Buffer::input;
  }
  return cell;
}

}  // namespace unisono
