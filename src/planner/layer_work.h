// Counts the work and bytes of one rank for one microbatch: in one layer, and at the model's ends.
#pragma once

#include <vector>

#include "planner/layout.h"
#include "planner/matrix_time.h"

namespace unisono::planner {

struct LayerWork {
  std::vector<MatrixProduct> products = {};   // with weights, in the precision asked for
  std::vector<MatrixProduct> attention = {};  // between activations, in bf16
  double attention_backward = 2;              // times as much as forward
  double memory_bytes = 0;                    // forward, besides what the products move
  double backward_memory_bytes = 0;
  // Bytes that a rank sends in its tensor-parallel group: the mean of forward and backward pass.
  double tensor_bytes = 0;
  double context_bytes = 0;  // of keys and values that go around cp
  double backward_context_bytes = 0;
  double heads_bytes = 0;  // into and out of attention, over uly
  double backward_heads_bytes = 0;
  double expert_tokens = 0;  // that a rank sends to experts, each to as many as it chooses
};

LayerWork layer_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     bool has_experts);

// The head: the product with the vocabulary, and the loss.
LayerWork head_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task);

}  // namespace unisono::planner
