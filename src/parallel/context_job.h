// The arguments of an attention call over a context, for the methods that implement it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unisono/parallel/context_parallel.hpp"

namespace unisono::parallel {

// A call along one axis of a context: the outer axis, after any Ulysses exchange.
struct ContextJob {
  Communicator* axis = nullptr;  // nullptr: only one rank
  const AttentionShape& shape;
  const AttentionKernel& kernel;
  // By rank of the axis.
  std::vector<std::vector<std::size_t>> positions;
  ConstAnySpan query = {};
  ConstAnySpan key = {};
  ConstAnySpan value = {};
  std::size_t length = 0;  // of the whole sequence
  std::size_t blocks = 0;  // as in ContextAxes

  int ranks() const { return axis == nullptr ? 1 : axis->size(); }
  int rank() const { return axis == nullptr ? 0 : axis->rank(); }
  const std::vector<std::size_t>& mine() const {
    return positions[static_cast<std::size_t>(rank())];
  }
  std::size_t query_count() const { return shape.batch * mine().size() * shape.heads * shape.dim; }
  std::size_t key_count(int rank) const {
    return shape.batch * positions[static_cast<std::size_t>(rank)].size() * shape.key_value_heads *
           shape.dim;
  }
  std::size_t rows() const { return shape.batch * mine().size() * shape.heads; }
};

// The sums of gradients in f32.
struct WideGradients {
  std::span<float> query;
  std::span<float> key;
  std::span<float> value;
};

}  // namespace unisono::parallel
