// What a training step is made of beside the model and the mesh.
#pragma once

#include <cstddef>

#include "unisono/parallel/context_parallel.hpp"

namespace unisono::step {

struct TrainingTask {
  std::size_t sequences = 1;  // of all ranks
  std::size_t length = 1;     // tokens of one
  int zero = 0;               // 0 to 3
  bool sequence = false;
  bool vocabulary = false;
  bool gathers_keys = false;  // cp by all_gather and reduce_scatter instead of a ring
  parallel::ContextOrder order = parallel::ContextOrder::zigzag;
  double element_bytes = 4;
};

}  // namespace unisono::step
