#include "executors/steps.h"

namespace unisono::executors {

void StepNumbers::add_block(std::size_t steps) {
  const auto gpu = static_cast<int>(first_blocks_.size()) - 1;
  const auto block = static_cast<int>(blocks() - first_blocks_.back());
  first_.push_back(ids_.size());
  for (std::size_t step = 0; step < steps; ++step) {
    ids_.push_back({gpu, block, static_cast<int>(step)});
  }
}

}  // namespace unisono::executors
