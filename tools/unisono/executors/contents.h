// The contents of memory while a program runs, as sums of contributions instead of numbers.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "executors/buffers.h"
#include "executors/flaw.h"

namespace unisono::executors {

// A sum of some ranks' parts of one chunk. counts[r] is the number of times that rank r's part is
// included; 2 stands for any number above one, which is always wrong.
struct Sum {
  int chunk = 0;
  std::vector<int> counts = {};
};
using Value = std::shared_ptr<const Sum>;  // null: nothing was written there yet

std::string to_text(const Sum& sum);
// REQUIRES: both are of one chunk.
Value sum_of(const Sum& one, const Sum& other);

class BufferContents {
 public:
  // In place: input and output are one buffer, as NCCL lays them over each other.
  BufferContents(const Schedule& shape, bool is_in_place);

  // Returns the cell of a place. It is unique over all ranks; two names of one place give the same
  // cell.
  std::uint64_t cell(int rank, BufferPlace place) const;
  Value at(std::uint64_t cell) const;
  void set(std::uint64_t cell, Value value) { values_[cell] = std::move(value); }

 private:
  const Schedule& shape_;
  bool is_in_place_;
  std::unordered_map<std::uint64_t, Value> values_;
};

// Reports the chunks that are not at the required place at the end of the collective.
void add_wrong_outputs(const BufferContents& memory, const Schedule& shape, Flaws& flaws);

}  // namespace unisono::executors
