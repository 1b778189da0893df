// Pieces of a tensor: sets of elements that the same ranks have before and the same ranks need
// after a reshard.
#pragma once

#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

// The most summands of one sum: as many as the kernels add at once.
inline constexpr std::size_t kMostSummands = 64;

struct ReshardPiece {
  ElementRanges elements = {};
  // holders[g]: the ranks that have summand g of the elements, in the order of the mesh. One group
  // if the source is not partial.
  std::vector<std::vector<int>> holders = {};
  std::vector<int> targets = {};  // ranks that need them, in the order of the mesh
};

// Returns the pieces that some rank needs. REQUIRES: both layouts passed check_layout().
// Throws usage if no source rank has some of them.
std::vector<ReshardPiece> pieces_of(const ReshardTensor& tensor);

// Returns the summand that each position of a source mesh has: its coordinate along the partial
// axes. All 0 if there is none.
std::vector<std::size_t> summands_of(const MeshLayout& layout);

// Returns the operation of the partial axes; sum if there is none. Throws usage if they differ.
ReduceOp summation_of(const MeshLayout& layout);

// Identifies tensors with the same pieces.
std::string pieces_key(const ReshardTensor& tensor);

}  // namespace unisono::parallel
