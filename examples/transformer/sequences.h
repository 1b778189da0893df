// Sums with the same order under every layout, for --same-bits: over parts of features that
// tensor-parallel ranks share, and over sequences, which are the leaves of every gradient.
//
// If a sequence's positions are on several ranks, partial sums there would have an order that
// depends on the layout. These ranks therefore exchange rows before summing: each rank gets whole
// sequences, in position order.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "compute.h"
#include "in_order/product.h"
#include "model.h"

namespace transformer {

// leave() ends a region with x W', where W is sharded by inputs over the tensor-parallel ranks.
// enter_backward() is the backward pass of entering a region: the sum of dy W over its matrices,
// sharded by outputs. `parts`: number of parts of the sharded dimension in the whole model.
void leave(const Groups& groups, const Local& local, std::span<const float> x,
           std::span<const float> w, std::size_t parts, std::span<float> out);
struct Flow {  // gradient flow through one of a region's input matrices
  std::span<const float> w = {};
  std::span<const float> dy = {};
};
void enter_backward(const Groups& groups, const Local& local, const std::vector<Flow>& flows,
                    std::size_t parts, std::span<float> out);
// Appends the terms of one of this rank's parts. The second enter_backward() uses it for other
// products.
using PartTerms = std::function<void(std::size_t part, std::vector<in_order::Term>& terms)>;
void enter_backward(const Groups& groups, const Local& local, std::size_t parts,
                    const PartTerms& terms, std::span<float> out);
// Returns the terms of dy W. Its inner dimension has `parts` equal parts on this rank.
PartTerms backward_terms(std::span<const float> w, std::span<const float> dy, std::size_t rows,
                         std::size_t parts);
// Computes the sum of the terms over a tree node of parts. REQUIRES: this rank has these parts.
void sum_parts(std::size_t rows, const unisono::parallel::Range& parts, const PartTerms& terms,
               std::span<float> out);

// Collective over tp. Gathers the rows that each rank has outside of a region.
std::vector<float> all_rows(const Groups& groups, const Local& local, std::span<const float> rows,
                            std::size_t width);

// Assembles whole sequences from ranks that have parts of them.
class Sequences {
 public:
  Sequences(const Groups& groups, const Local& local);
  // Returns the sequences that this rank sums, numbered as in the microbatch.
  const unisono::parallel::Range& mine() const { return mine_; }
  // Collective over the ranks that share sequences. Returns the rows of whole sequences.
  template <typename T>
  std::vector<T> exchange(std::span<const T> rows) const;

 private:
  const Groups& groups_;
  const Local& local_;
  unisono::parallel::Range mine_;
};

// Rows of x and dy, whose product dy' x is added to a gradient.
struct Factors {
  std::span<const float> x = {};
  std::span<const float> dy = {};
  std::span<float> gradient = {};
  // For the same bits, if dy has the features of several heads that share rows of the gradient: the
  // features of each head. Other tensor-parallel ranks may have further heads for the same rows.
  std::vector<std::span<float>> heads = {};
  bool is_shared = false;
};
// For the same bits: rows outside of a region to be summed.
struct Summands {
  std::span<const float> rows = {};
  std::span<float> gradient = {};
};

// Adds the gradients of a unit. Collective over tp and the ranks that share sequences.
void add_gradients(const Groups& groups, const Local& local, const std::vector<Factors>& factors,
                   const std::vector<Summands>& summands, const LeafReady& leaf_ready);

// Returns the memory for the gradient of a norm's gain: `gradient`, or for the same bits `rows`,
// with one gradient per row.
std::span<float> gain_gradient(const Local& local, std::span<float> gradient,
                               std::vector<float>& rows, std::size_t size);

}  // namespace transformer
