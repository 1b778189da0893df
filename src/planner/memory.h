// Estimates the memory of the fullest rank by part: weights, gradients and optimiser as sharded by
// ZeRO (Rajbhandari et al., 2020), activations as counted by Korthikanti et al., 2022.
#pragma once

#include "planner/layout.h"

namespace unisono::planner {

struct MemoryParts {
  double weights = 0;
  double gradients = 0;
  double optimiser = 0;
  double activations = 0;
  double cache = 0;    // keys and values
  double buffers = 0;  // of the framework and of communication

  double total() const { return weights + gradients + optimiser + activations + cache + buffers; }
};

// Weights in bf16, gradients and Adam's moments in the task's types, and a copy of the weights in
// f32.
MemoryParts training_memory(const ModelShape& shape, const Layout& layout,
                            const TrainingTask& task);

// The weights of one rank in the fullest stage; expert weights count separately.
struct LocalWeights {
  double dense = 0;
  double experts = 0;
};
LocalWeights local_weights(const ModelShape& shape, const Layout& layout);

// Returns the bytes per layer and microbatch that are kept for the backward pass.
double kept_bytes(const ModelShape& shape, const Layout& layout, const TrainingTask& task);

// Returns the number of layers in the fullest stage.
double stage_layers(const ModelShape& shape, const Layout& layout);

}  // namespace unisono::planner
