// Pieces of a tensor: sets of elements that the same ranks hold before a reshard and the same ranks
// need after it.
#pragma once

#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

// Maximum number of summands: the kernels' maximum number of sources.
inline constexpr std::size_t kMostSummands = 64;

struct ReshardPiece {
  ElementRanges elements = {};
  // holders[g]: ranks that hold summand g of the elements, in mesh order. There is one group if the
  // source is not partial.
  std::vector<std::vector<int>> holders = {};
  std::vector<int> targets = {};  // ranks that need the elements, in mesh order
};

// Returns the pieces that any rank needs. REQUIRES: both layouts passed check_layout(). Throws
// Error(usage) if no source rank holds some of them.
std::vector<ReshardPiece> pieces_of(const ReshardTensor& tensor);

// Returns the summand that each position of a source mesh holds: its coordinate along the partial
// axes; 0 if there are no partial axes.
std::vector<std::size_t> summands_of(const MeshLayout& layout);

// Returns the operation of the partial axes, or sum if there are none. Throws Error(usage) if the
// axes have different operations.
ReduceOp summation_of(const MeshLayout& layout);

// Returns a key that is equal for tensors with the same pieces.
std::string pieces_key(const ReshardTensor& tensor);

}  // namespace unisono::parallel
