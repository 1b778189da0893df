// A model's weights, named as in its checkpoint, and the ranks that hold them under a layout.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/shape.h"
#include "unisono/parallel/reshard.hpp"
#include "weights/model_layout.h"

namespace unisono::weights {

struct Weight {
  std::string name = {};
  std::vector<std::size_t> shape = {};
  int layer = 0;    // kFirst: before the first layer; kLast: after the last
  int expert = -1;  // -1: not an expert's weight
  // Dimension that tensor parallelism splits, and its number of heads, which stay whole; 0 heads:
  // it may be split anywhere.
  int dim = -1;  // -1: none, every rank of the stage has the whole weight
  std::size_t heads = 0;
};
inline constexpr int kFirst = -1;
inline constexpr int kLast = -2;

struct Weights {
  std::vector<Weight> all = {};
  double left_out = 0;  // weights that the shape counts but does not name, such as biases
};

// Returns a decoder's weights, named as Hugging Face checkpoints of Llama, Qwen3-MoE and
// DeepSeek-V3 name them. Throws Error(usage) for a model with other parts.
Weights weights_of(const planner::ModelShape& shape);

// Returns all weights with both layouts. If the layouts do not fit the model, throws Error(usage),
// which lists every problem.
std::vector<parallel::ReshardTensor> reshard_tensors(const planner::ModelShape& shape,
                                                     const Weights& weights, Dtype dtype,
                                                     const ModelLayout& from,
                                                     const ModelLayout& to);

}  // namespace unisono::weights
