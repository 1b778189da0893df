// The properties of a training step besides the model and the mesh.
#pragma once

#include <cstddef>
#include <string>

#include "unisono/parallel/context_parallel.hpp"

namespace unisono::step {

struct TrainingTask {
  std::size_t sequences = 1;  // over all ranks
  std::size_t length = 1;     // tokens per sequence
  int zero = 0;               // 0 to 3
  bool sequence = false;
  bool vocabulary = false;
  bool gathers_keys = false;  // along cp: all_gather and reduce_scatter instead of a ring
  std::string schedule = {};  // name of the pipeline's schedule; empty: no pipeline
  int microbatches = 8;       // microbatches of the pipeline
  int chunks = 0;             // stages per rank, if the schedule leaves the choice; 0: two
  parallel::ContextOrder order = parallel::ContextOrder::zigzag;
  double element_bytes = 4;
};

}  // namespace unisono::step
