// The tasks of a GPU's thread blocks in a plan, and the semaphores with which they wait for each
// other.
#pragma once

#include <cstddef>
#include <vector>

#include "mscclpp/messages.h"

namespace unisono::mscclpp {

struct BlockTask {
  WaitingStep action = {};
  bool is_grant = false;    // says only that a place is free
  std::size_t message = 0;  // that it is about, in the lane of its block
  std::vector<int> acquires = {};
  std::vector<int> releases = {};
};

// In their order, of each thread block of GPU `gpu` of a program. `semaphores`, those of the GPU,
// get what the tasks acquire and release.
std::vector<std::vector<BlockTask>> tasks_of(const std::vector<msccl::ThreadBlock>& blocks, int gpu,
                                             const Messages& messages,
                                             std::vector<int>& semaphores);

}  // namespace unisono::mscclpp
