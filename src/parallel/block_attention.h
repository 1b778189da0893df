// Attention by blocks of the sequence, whose results have the same bits for any number of ranks.
//
// The kernel sees the keys of one block at a time. The tree of base/leaf_tree.h merges
//   - results over the key blocks,
//   - gradients of queries over the key blocks, and
//   - gradients of keys over the query blocks.
// So the order in which a ring brings the blocks does not matter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallel/context_job.h"

namespace unisono::parallel {

// The rows of a block, all of which are on one rank.
struct BlockRows {
  std::size_t number = 0;  // block number
  std::size_t first = 0;   // first row in each sequence of the batch
  std::size_t count = 0;
};

// Returns the blocks of a rank's positions, which must ascend.
// Errors: usage if the rank has only a part of a block.
std::vector<BlockRows> block_rows(const std::vector<std::size_t>& positions, std::size_t length,
                                  std::size_t blocks);

// A node of the tree over blocks.
struct BlockSum {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<float> values = {};
};

// Merges the results of this rank's queries over all keys.
class BlockedResult {
 public:
  explicit BlockedResult(const ContextJob& job) : job_(job) {}
  // Adds the keys of whole blocks, whose positions must ascend.
  void add(const std::vector<std::size_t>& positions, ConstAnySpan key, ConstAnySpan value);
  // REQUIRES: all keys have been added.
  void write(float* out, float* log_sum) const;

 private:
  const ContextJob& job_;
  std::vector<BlockSum> sums_;  // results, followed by log-sum-exps
};

// Runs the forward pass around a ring, if there are other ranks.
void blocked_forward(const ContextJob& job, float* out, float* log_sum);
void blocked_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                      const float* delta, const WideGradients& gradients);

}  // namespace unisono::parallel
