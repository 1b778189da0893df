#include "msccl/cell_places.h"

namespace unisono::msccl {
namespace {

// Numbers the chunks that each rank keeps in scratch, in their order, so that consecutive chunks
// stay consecutive.
std::vector<std::map<int, int>> number_scratch(const Schedule& schedule) {
  std::vector<std::map<int, int>> slots(static_cast<std::size_t>(schedule.ranks));
  for (const Move& move : schedule.moves) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      if (move.target == Buffer::scratch) {
        slots[static_cast<std::size_t>(move.to)].emplace(chunk, 0);
      }
    }
  }
  for (std::map<int, int>& of_rank : slots) {
    int next = 0;
    for (auto& [chunk, slot] : of_rank) {
      slot = next++;
    }
  }
  return slots;
}

bool follows(const BufferPlace& first, const BufferPlace& next, int chunks) {
  return first.buffer == next.buffer && first.offset + chunks == next.offset;
}

bool follows(const MovePiece& first, const MovePiece& next, Combine combine) {
  return follows(first.source, next.source, first.chunks) &&
         follows(first.target, next.target, first.chunks) &&
         (combine == Combine::replace || follows(first.before, next.before, first.chunks));
}

}  // namespace

CellPlaces::CellPlaces(const Schedule& schedule)
    : schedule_(schedule), first_writes_(schedule), slots_(number_scratch(schedule)) {}

int CellPlaces::scratch_chunks(int rank) const {
  return static_cast<int>(slots_[static_cast<std::size_t>(rank)].size());
}

BufferPlace CellPlaces::of(const Cell& cell) const {
  switch (cell.buffer) {
    case Buffer::input:
      return {.buffer = cell.buffer,
              .offset = executors::input_offset(schedule_, cell.rank, cell.chunk)};
    case Buffer::output:
      return {.buffer = cell.buffer,
              .offset = executors::output_offset(schedule_, cell.rank, cell.chunk)};
    case Buffer::scratch:
      break;
  }
  return {.buffer = cell.buffer,
          .offset = slots_[static_cast<std::size_t>(cell.rank)].at(cell.chunk)};
}

MovePiece CellPlaces::piece_of(const Move& move, int chunk) const {
  const Cell target{.rank = move.to, .buffer = move.target, .chunk = chunk};
  const Cell source{.rank = move.from, .buffer = move.source, .chunk = chunk};
  return {.source = of(first_writes_.read_through(source, move.step)),
          .target = of(target),
          .before = move.combine == Combine::reduce
                        ? of(first_writes_.read_through(target, move.step))
                        : BufferPlace{}};
}

std::vector<MovePiece> CellPlaces::pieces_of(const Move& move) const {
  std::vector<MovePiece> result;
  for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
    const MovePiece next = piece_of(move, chunk);
    if (!result.empty() && follows(result.back(), next, move.combine)) {
      ++result.back().chunks;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

bool CellPlaces::is_written(const Cell& cell) const {
  return first_writes_.step(cell) >= 0;
}

}  // namespace unisono::msccl
