#include "executors/moves.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/sort_by.h"
#include "unisono/error.hpp"

namespace unisono::executors {

MoveFinder::MoveFinder(Schedule shape, bool is_in_place)
    : shape_(std::move(shape)), memory_(shape_, is_in_place) {
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
      if (has_input(shape_, rank, chunk)) {
        const BufferPlace place{.buffer = Buffer::input,
                                .offset = input_offset(shape_, rank, chunk)};
        held_[memory_.cell(rank, place)] = {
            .chunk = chunk, .cell = {.rank = rank, .buffer = Buffer::input, .chunk = chunk}};
      }
      if (needs_output(shape_, rank, chunk)) {
        const BufferPlace place{.buffer = Buffer::output,
                                .offset = output_offset(shape_, rank, chunk)};
        outputs_[memory_.cell(rank, place)] = chunk;
      }
    }
  }
}

Held MoveFinder::leaving(Held held) {
  held.is_coming = true;
  held.version = times_[key(held.cell)].writes.size();
  return held;
}

void MoveFinder::keep(int rank, std::uint64_t target, const Held& came) {
  if (const auto found = outputs_.find(target);
      found != outputs_.end() && found->second == came.chunk) {
    return put(rank, target, came);
  }
  held_[target] = came;
}

// Returns the schedule's cell for a place that holds this chunk.
Cell MoveFinder::cell_of(int rank, std::uint64_t place, int chunk) const {
  const auto found = outputs_.find(place);
  const bool is_output = found != outputs_.end() && found->second == chunk;
  return {.rank = rank, .buffer = is_output ? Buffer::output : Buffer::scratch, .chunk = chunk};
}

void MoveFinder::put(int rank, std::uint64_t target, const Held& came) {
  const Cell cell = cell_of(rank, target, came.chunk);
  claim(cell, target);
  move(came, cell, Combine::replace);
  held_[target] = {.chunk = came.chunk, .cell = cell};
}

// A schedule has only one copy of a chunk in scratch, so the previous place of the chunk loses it.
void MoveFinder::claim(const Cell& cell, std::uint64_t place) {
  const auto [found, is_new] = places_.try_emplace(cell_key(shape_, cell), place);
  if (!is_new && found->second != place) {
    const auto other = held_.find(found->second);
    if (other != held_.end() && !other->second.is_coming && other->second.cell == cell) {
      lost_[found->second] = cell.chunk;
      other->second.chunk = -1;
    }
    found->second = place;
  }
}

Held MoveFinder::settled(int rank, std::uint64_t place) {
  const auto lost = lost_.find(place);
  if (lost != lost_.end() && held_[place].chunk < 0) {
    throw Error(ErrorCode::usage,
                fmt::format("GPU {} keeps chunk {} at two places at once\na schedule has one place "
                            "per chunk and rank; use verify, which proves the program itself",
                            rank, lost->second));
  }
  if (held_[place].is_coming) {
    put(rank, place, held_[place]);
  }
  return held_[place];
}

void MoveFinder::add(int rank, std::uint64_t source, std::uint64_t target, const Held& came) {
  const Held operand = settled(rank, source);
  const Cell cell = cell_of(rank, target, operand.chunk);
  move_own(operand, cell);
  claim(cell, target);
  move(came, cell, Combine::reduce);
  held_[target] = {.chunk = operand.chunk, .cell = cell};
}

Held MoveFinder::add_aside(int rank, std::uint64_t source, const Held& came) {
  const Held operand = settled(rank, source);
  const bool is_output = needs_output(shape_, rank, operand.chunk);
  const Cell cell{
      .rank = rank, .buffer = is_output ? Buffer::output : Buffer::scratch, .chunk = operand.chunk};
  move_own(operand, cell);
  move(came, cell, Combine::reduce);
  return {.chunk = operand.chunk, .cell = cell};
}

// Data that only passed through the source is sent from its origin, if it can still be found there.
void MoveFinder::copy(int rank, std::uint64_t source, std::uint64_t target) {
  const Held coming = held_[source];
  if (coming.is_coming && step_of(coming, cell_of(rank, target, coming.chunk))) {
    return put(rank, target, coming);
  }
  const Held from = settled(rank, source);
  const Cell cell = cell_of(rank, target, from.chunk);
  claim(cell, target);
  move_own(from, cell);
  held_[target] = {.chunk = from.chunk, .cell = cell};
}

// Keeps the data that is already in the cell of the sum, and adds the others to it.
void MoveFinder::sum(int rank, std::vector<std::uint64_t> sources, std::uint64_t target) {
  const auto there = std::find_if(sources.begin(), sources.end(), [&](std::uint64_t source) {
    const Held& held = held_[source];
    return !held.is_coming && held.cell == cell_of(rank, target, held.chunk);
  });
  if (there != sources.end()) {
    std::iter_swap(sources.begin(), there);
  }
  const Held to = settled(rank, sources.front());
  const Cell cell = cell_of(rank, target, to.chunk);
  move_own(to, cell);
  claim(cell, target);
  for (std::size_t i = 1; i < sources.size(); ++i) {
    const Held from = held_[sources[i]];
    move(from.is_coming && step_of(from, cell) ? from : settled(rank, sources[i]), cell,
         Combine::reduce);
  }
  held_[target] = {.chunk = to.chunk, .cell = cell};
}

// Brings the rank's own value to `cell`, unless a read of the cell gives it already.
void MoveFinder::move_own(const Held& held, const Cell& cell) {
  const bool reads_through = held.cell.buffer == Buffer::input && times_[key(cell)].writes.empty();
  if (held.cell != cell && !reads_through) {
    move(held, cell, Combine::replace);
  }
}

// Returns the first step in which the move reads the right data and overwrites nothing that is
// still needed; returns nothing if the source is overwritten before. Within a step all reads come
// before all writes.
std::optional<int> MoveFinder::step_of(const Held& from, const Cell& to) {
  const Times& read = times_[key(from.cell)];
  const Times& written = times_[key(to)];
  const std::size_t version = from.is_coming ? from.version : read.writes.size();
  const int seen = version == 0 ? 0 : read.writes[version - 1] + 1;
  const int step =
      std::max({seen, written.last_write() + 1, written.read, lanes_[{from.cell.rank, to.rank}]});
  if (version < read.writes.size() && step > read.writes[version]) {
    return std::nullopt;
  }
  return step;
}

void MoveFinder::move(const Held& from, const Cell& to, Combine combine) {
  const std::optional<int> step = step_of(from, to);
  if (!step) {
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "GPU {} changes chunk {} after sending it to GPU {}, where it is used later\na "
            "schedule reads a chunk when it is used; use verify, which proves the program itself",
            from.cell.rank, from.chunk, to.rank));
  }
  // Between two ranks messages keep their order.
  lanes_[{from.cell.rank, to.rank}] = *step;
  int& read = times_[key(from.cell)].read;
  read = std::max(read, *step);
  times_[key(to)].writes.push_back(*step);
  moves_.push_back({.step = *step,
                    .from = from.cell.rank,
                    .to = to.rank,
                    .chunk = from.chunk,
                    .source = from.cell.buffer,
                    .target = to.buffer,
                    .combine = combine});
}

Schedule MoveFinder::finish() && {
  Schedule schedule = std::move(shape_);
  sort_by(moves_, [](const Move& move) { return move.step; });
  for (const Move& move : moves_) {
    if (!schedule.moves.empty()) {
      Move& last = schedule.moves.back();
      if (last.step == move.step && last.from == move.from && last.to == move.to &&
          last.chunk + last.chunks == move.chunk && last.source == move.source &&
          last.target == move.target && last.combine == move.combine) {
        ++last.chunks;
        continue;
      }
    }
    schedule.moves.push_back(move);
  }
  schedule.steps = schedule.moves.empty() ? 0 : schedule.moves.back().step + 1;
  return schedule;
}

}  // namespace unisono::executors
