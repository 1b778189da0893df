// Sums that have one order under every layout, for --same-bits: over parts of the features that
// tensor-parallel ranks share, and over sequences, the leaves of every gradient.
//
// A sequence whose positions are on several ranks has partial sums there, in an order that depends
// on the layout. So these ranks exchange rows before they sum: each gets whole sequences, in the
// order of their positions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "compute.h"
#include "in_order/product.h"
#include "model.h"

namespace transformer {

// Leaves a region with x W', and enters one backwards with the sum of dy W over its matrices: W is
// cut over the tensor-parallel ranks in its inputs, or in its outputs. `parts`: of these, in the
// whole model.
void leave(const Groups& groups, const Local& local, std::span<const float> x,
           std::span<const float> w, std::size_t parts, std::span<float> out);
struct Flow {  // through one of the matrices that a region is entered with
  std::span<const float> w = {};
  std::span<const float> dy = {};
};
void enter_backward(const Groups& groups, const Local& local, const std::vector<Flow>& flows,
                    std::size_t parts, std::span<float> out);
// The second one, for products of another kind: appends the terms of one of this rank's parts.
using PartTerms = std::function<void(std::size_t part, std::vector<in_order::Term>& terms)>;
void enter_backward(const Groups& groups, const Local& local, std::size_t parts,
                    const PartTerms& terms, std::span<float> out);
// Returns the terms of dy W. Its inner dimension has `parts` equal parts on this rank.
PartTerms backward_terms(std::span<const float> w, std::span<const float> dy, std::size_t rows,
                         std::size_t parts);
// Their sum over a node of the tree over all parts, which this rank has.
void sum_parts(std::size_t rows, const unisono::parallel::Range& parts, const PartTerms& terms,
               std::span<float> out);

// Collective over tp. Returns all rows, of those that a rank has outside of a region.
std::vector<float> all_rows(const Groups& groups, const Local& local, std::span<const float> rows,
                            std::size_t width);

// Whole sequences, of those that several ranks have parts of.
class Sequences {
 public:
  Sequences(const Groups& groups, const Local& local);
  // The sequences that this rank sums, numbered as in the microbatch.
  const unisono::parallel::Range& mine() const { return mine_; }
  // Collective over the ranks that share sequences. Returns the rows of whole sequences.
  template <typename T>
  std::vector<T> exchange(std::span<const T> rows) const;

 private:
  const Groups& groups_;
  const Local& local_;
  unisono::parallel::Range mine_;
};

// Rows of x and of dy, whose product dy' x is added to a gradient.
struct Factors {
  std::span<const float> x = {};
  std::span<const float> dy = {};
  std::span<float> gradient = {};
  // For the same bits, where dy has the features of heads that share rows of the gradient: those of
  // each head. Other tensor-parallel ranks may have further heads of the same rows.
  std::vector<std::span<float>> heads = {};
  bool is_shared = false;
};
// For the same bits: rows outside of a region that are added up.
struct Summands {
  std::span<const float> rows = {};
  std::span<float> gradient = {};
};

// Adds the gradients of a unit. Collective over tp and the ranks that share sequences.
void add_gradients(const Groups& groups, const Local& local, const std::vector<Factors>& factors,
                   const std::vector<Summands>& summands, const LeafReady& leaf_ready);

// The gradient of a norm's gain: of all rows, or for the same bits of each row, in `rows`.
std::span<float> gain_gradient(const Local& local, std::span<float> gradient,
                               std::vector<float>& rows, std::size_t size);

}  // namespace transformer
