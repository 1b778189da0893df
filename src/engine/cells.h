// State of one rank's cells during lowering.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/program.h"

namespace unisono::engine {

// The output and scratch cells that have been written.
class CellSet {
 public:
  explicit CellSet(int chunks) : cells_(2 * static_cast<std::size_t>(chunks)) {}
  bool written(OperandPlace place, int chunk) const { return cells_[index(place, chunk)]; }
  void mark(OperandPlace place, int chunk, int chunks) {
    for (int i = 0; i < chunks; ++i) {
      cells_[index(place, chunk + i)] = true;
    }
  }

 private:
  static std::size_t index(OperandPlace place, int chunk) {
    return 2 * static_cast<std::size_t>(chunk) + (place == OperandPlace::scratch ? 1 : 0);
  }
  std::vector<bool> cells_;
};

// Every cell's last writer and the readers since then, as pass numbers. If the call is in place,
// input and output are one cell.
class CellHistory {
 public:
  CellHistory(int chunks, bool in_place)
      : in_place_(in_place), cells_(3 * static_cast<std::size_t>(chunks)) {}
  int writer(OperandPlace place, int chunk) const { return at(place, chunk).writer; }
  const std::vector<int>& readers(OperandPlace place, int chunk) const {
    return at(place, chunk).readers;
  }
  void read(OperandPlace place, int chunk, int pass) {
    auto& readers = cells_[index(place, chunk)].readers;
    if (readers.empty() || readers.back() != pass) {
      readers.push_back(pass);
    }
  }
  void write(OperandPlace place, int chunk, int pass) {
    Cell& cell = cells_[index(place, chunk)];
    cell.writer = pass;
    cell.readers.clear();
  }

 private:
  struct Cell {
    int writer = -1;
    std::vector<int> readers;
  };
  std::size_t index(OperandPlace place, int chunk) const {
    const std::size_t kind = place == OperandPlace::scratch               ? 2
                             : place == OperandPlace::input && !in_place_ ? 1
                                                                          : 0;
    return 3 * static_cast<std::size_t>(chunk) + kind;
  }
  const Cell& at(OperandPlace place, int chunk) const { return cells_[index(place, chunk)]; }
  bool in_place_;
  std::vector<Cell> cells_;
};

}  // namespace unisono::engine
