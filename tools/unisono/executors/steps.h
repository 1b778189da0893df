// Numbers the steps of another executor's program.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::executors {

// A step of a thread block of a GPU.
struct StepId {
  int gpu = -1;  // -1: not a single place
  int block = -1;
  int step = -1;
};

// All steps of a program in one list, block by block, and all its thread blocks, GPU by GPU.
class StepNumbers {
 public:
  static constexpr std::size_t none() { return static_cast<std::size_t>(-1); }

  // Adds a GPU; its blocks follow one after the other.
  void add_gpu() { first_blocks_.push_back(blocks()); }
  void add_block(std::size_t steps);

  std::size_t size() const { return ids_.size(); }
  const StepId& id(std::size_t index) const { return ids_[index]; }
  std::size_t index(const StepId& id) const {
    return begin(block_number(id)) + static_cast<std::size_t>(id.step);
  }

  std::size_t blocks() const { return first_.size(); }
  std::size_t block_number(const StepId& id) const {
    return first_blocks_[static_cast<std::size_t>(id.gpu)] + static_cast<std::size_t>(id.block);
  }
  std::size_t block_number(std::size_t index) const { return block_number(ids_[index]); }
  // The first step of a block, and the step after its last one.
  std::size_t begin(std::size_t block) const { return first_[block]; }
  std::size_t end(std::size_t block) const {
    return block + 1 < first_.size() ? first_[block + 1] : ids_.size();
  }

 private:
  std::vector<StepId> ids_;
  std::vector<std::size_t> first_;         // step of each block
  std::vector<std::size_t> first_blocks_;  // of each GPU
};

}  // namespace unisono::executors
