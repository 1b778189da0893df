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
  for (const Move& move : schedule.moves) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      steps_.try_emplace(cell_key(schedule, {move.to, move.target, chunk}), move.step);
    }
  }
}

int FirstWrites::step(Cell cell) const {
  const auto found = steps_.find(cell_key(schedule_, cell));
  return found == steps_.end() ? -1 : found->second;
}

Cell FirstWrites::read_through(Cell cell, int at) const {
  const int written = step(cell);
  if (written < 0 || written >= at) {
    cell.buffer = Buffer::input;
  }
  return cell;
}

}  // namespace unisono
