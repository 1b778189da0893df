// Derives the moves of a schedule from the contents of memory: the part of an import that the
// programs of all executors share.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executors/contents.h"
#include "schedule/cells.h"
#include "schedule/schedule.h"

namespace unisono::executors {

// The contents of a program's place, in a schedule's terms.
struct Held {
  int chunk = -1;           // -1: nothing
  Cell cell = {};           // where a schedule keeps it
  bool is_coming = false;   // received but not stored yet: `cell` is the sender's cell
  std::size_t version = 0;  // the number of writes to that cell before it was sent
};

// Takes the actions of a program, in a possible order, and assigns to each transfer the first step
// in which a schedule can do it. Places are cells of BufferContents. Data that a rank receives into
// scratch causes a move only when it is used. Throws Error(usage) if a schedule cannot express an
// action.
class MoveFinder {
 public:
  MoveFinder(Schedule shape, bool is_in_place);

  std::uint64_t place(int rank, BufferPlace place) const { return memory_.cell(rank, place); }

  // Returns the contents of a place; stores them first if they were only received.
  Held settled(int rank, std::uint64_t place);
  Held held(std::uint64_t place) { return held_[place]; }
  // Returns the contents on their way to another rank or another place.
  Held leaving(Held held);
  // Stores received data. If scratch only passes it on to a sum, no copy is made.
  void keep(int rank, std::uint64_t target, const Held& came);
  void put(int rank, std::uint64_t target, const Held& came);
  void copy(int rank, std::uint64_t source, std::uint64_t target);
  // target = what came + source.
  void add(int rank, std::uint64_t source, std::uint64_t target, const Held& came);
  // Like add(), for a sum that the program does not store; the schedule stores it at the rank's
  // place of the chunk.
  Held add_aside(int rank, std::uint64_t source, const Held& came);
  // target = the sum of the sources, within the rank.
  void sum(int rank, std::vector<std::uint64_t> sources, std::uint64_t target);

  Schedule finish() &&;

 private:
  struct Times {
    std::vector<int> writes;  // the steps that write the cell, in their order
    int read = 0;             // the last step that reads it

    int last_write() const { return writes.empty() ? -1 : writes.back(); }
  };

  std::uint64_t key(const Cell& cell) const { return cell_key(shape_, cell); }
  Cell cell_of(int rank, std::uint64_t place, int chunk) const;
  void claim(const Cell& cell, std::uint64_t place);
  void move_own(const Held& held, const Cell& cell);
  std::optional<int> step_of(const Held& from, const Cell& to);
  void move(const Held& from, const Cell& to, Combine combine);

  Schedule shape_;
  BufferContents memory_;
  std::unordered_map<std::uint64_t, Held> held_;
  std::unordered_map<std::uint64_t, int> outputs_;           // place -> chunk that belongs there
  std::unordered_map<std::uint64_t, std::uint64_t> places_;  // cell -> place that holds it
  std::unordered_map<std::uint64_t, int> lost_;  // place -> the chunk for which it lost its cell
  std::unordered_map<std::uint64_t, Times> times_;
  std::map<std::pair<int, int>, int> lanes_;
  std::vector<Move> moves_;
};

}  // namespace unisono::executors
