#include "reshard/sides.h"

#include <algorithm>

#include "reshard/elements.h"
#include "reshard/pieces.h"

namespace unisono::parallel {
namespace {

ReshardSide side_of(const MeshLayout& layout, const std::vector<std::size_t>& shape) {
  ReshardSide side;
  const std::vector<std::size_t> summands = summands_of(layout);
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    const int rank = layout.rank_at(position);
    side.elements.emplace(rank, elements_at(layout, shape, position));
    side.summand.emplace(rank, summands[static_cast<std::size_t>(position)]);
    side.summands = std::max(side.summands, summands[static_cast<std::size_t>(position)] + 1);
  }
  return side;
}

}  // namespace

ReshardSides sides_of(const ReshardTensor& tensor) {
  return {.from = side_of(tensor.from, tensor.shape), .to = side_of(tensor.to, tensor.shape)};
}

bool overlap(const ElementRanges& a, const ElementRanges& b) {
  for (std::size_t dim = 0; dim < a.size(); ++dim) {
    if (common(a[dim], b[dim]).empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace unisono::parallel
