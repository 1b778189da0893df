// Counts the work and bytes of one rank for one microbatch, in one layer and at the ends of the
// model.
#pragma once

#include <vector>

#include "planner/layout.h"
#include "planner/matrix_time.h"

namespace unisono::planner {

struct LayerWork {
  std::vector<MatrixProduct> products = {};   // with weights, in the task's precision
  std::vector<MatrixProduct> attention = {};  // between activations, in bf16
  double attention_backward = 2;              // multiple of the forward work
  double memory_bytes = 0;                    // forward, besides the products' traffic
  double backward_memory_bytes = 0;
  // Bytes that a rank sends in its tensor-parallel group: the mean of forward and backward pass.
  double tensor_bytes = 0;
  double context_bytes = 0;  // keys and values around cp
  double backward_context_bytes = 0;
  double heads_bytes = 0;  // into and out of attention, over uly
  double backward_heads_bytes = 0;
  double expert_tokens = 0;  // sent by a rank, each to all of its chosen experts
};

LayerWork layer_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     bool has_experts);

// Returns the work of the head: the vocabulary product, and the loss.
LayerWork head_work(const ModelShape& shape, const Layout& layout, const TrainingTask& task);

}  // namespace unisono::planner
