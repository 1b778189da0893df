// Estimates the memory of the fullest rank by part: weights, gradients and optimiser as ZeRO shards
// them (Rajbhandari et al., 2020), activations as Korthikanti et al., 2022, count them.
#pragma once

#include "planner/layout.h"

namespace unisono::planner {

struct MemoryParts {
  double weights = 0;
  double gradients = 0;
  double optimiser = 0;
  double activations = 0;
  double cache = 0;    // of keys and values
  double buffers = 0;  // of the framework, of communication

  double total() const { return weights + gradients + optimiser + activations + cache + buffers; }
};

// Weights in bf16, gradients and Adam's moments as the task says, and a copy of the weights in f32.
MemoryParts training_memory(const ModelShape& shape, const Layout& layout,
                            const TrainingTask& task);

// Weights that one rank of the fullest stage has, those of experts apart.
struct LocalWeights {
  double dense = 0;
  double experts = 0;
};
LocalWeights local_weights(const ModelShape& shape, const Layout& layout);

// Bytes that a layer keeps for the backward pass, of one microbatch.
double kept_bytes(const ModelShape& shape, const Layout& layout, const TrainingTask& task);

// Layers of the fullest stage.
double stage_layers(const ModelShape& shape, const Layout& layout);

}  // namespace unisono::planner
