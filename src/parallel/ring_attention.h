// Attention along one axis: queries stay, and keys and values come to them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "unisono/parallel/context_parallel.hpp"

namespace unisono::parallel {

// One axis of a context, as its methods see it.
struct ContextJob {
  Communicator& axis;
  const AttentionShape& shape;
  const AttentionKernel& kernel;
  // The positions of each rank of the axis.
  std::vector<std::vector<std::size_t>> positions;
  ConstAnySpan query = {};
  ConstAnySpan key = {};
  ConstAnySpan value = {};
  bool in_position_order = false;

  const std::vector<std::size_t>& mine() const {
    return positions[static_cast<std::size_t>(axis.rank())];
  }
  std::size_t query_count() const { return shape.batch * mine().size() * shape.heads * shape.dim; }
  std::size_t key_count(int rank) const {
    return shape.batch * positions[static_cast<std::size_t>(rank)].size() * shape.key_value_heads *
           shape.dim;
  }
  std::size_t rows() const { return shape.batch * mine().size() * shape.heads; }
};

// Sums of gradients.
struct WideGradients {
  std::span<float> query;
  std::span<float> key;
  std::span<float> value;
};

void ring_forward(const ContextJob& job, float* out, float* log_sum);
// `delta` as in AttentionBackward; writes the gradients.
void ring_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                   const float* delta, const WideGradients& gradients);
void gathered_forward(const ContextJob& job, float* out, float* log_sum);
void gathered_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                       const float* delta, const WideGradients& gradients);

}  // namespace unisono::parallel
