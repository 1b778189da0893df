// The weights of a model by their names in its checkpoint, and the ranks that hold them under a
// layout.
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
  int layer = 0;    // kFirst and kLast: the ends of the model
  int expert = -1;  // -1: every token visits it
  // The dimension that tensor parallelism cuts, and the number of heads in it, which stay whole;
  // 0: anything may be cut.
  int dim = -1;  // -1: none, every rank of the stage has all of it
  std::size_t heads = 0;
};
inline constexpr int kFirst = -1;
inline constexpr int kLast = -2;

struct Weights {
  std::vector<Weight> all = {};
  double left_out = 0;  // weights that the shape counts and does not name, such as biases
};

// Returns the weights of a decoder under the names of Llama, Qwen3-MoE and DeepSeek-V3 in a Hugging
// Face checkpoint. Throws Error(usage) for a model with other parts.
Weights weights_of(const planner::ModelShape& shape);

// Returns all weights with both layouts. Throws Error(usage) with everything in the layouts that
// does not fit the model.
std::vector<parallel::ReshardTensor> reshard_tensors(const planner::ModelShape& shape,
                                                     const Weights& weights, Dtype dtype,
                                                     const ModelLayout& from,
                                                     const ModelLayout& to);

}  // namespace unisono::weights
