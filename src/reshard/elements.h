// Elements of a tensor as lists of ranges: one list per dimension, in ascending order, without
// empty or adjacent ranges.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

std::size_t length_of(const std::vector<Range>& ranges);

// Appends a range. REQUIRES: the range starts at or after the end of the last range.
void append(std::vector<Range>& ranges, Range range);

// Returns `count` elements of `ranges`, starting at index `first`.
std::vector<Range> part_of(const std::vector<Range>& ranges, std::size_t first, std::size_t count);

// Returns the intersection of both lists.
std::vector<Range> common(const std::vector<Range>& a, const std::vector<Range>& b);

// Returns the number of elements of `ranges` before `position`.
std::size_t index_in(const std::vector<Range>& ranges, std::size_t position);

// Splits elements into parts of at most `most` elements: as few as possible, along the outermost
// dimensions.
std::vector<ElementRanges> cut(const ElementRanges& elements, std::size_t most);

// Calls body(box) for each combination of one range per dimension, the last dimension fastest.
template <typename Body>
void for_each_box(const ElementRanges& elements, const Body& body) {
  std::vector<Range> box(elements.size());
  std::vector<std::size_t> at(elements.size(), 0);
  for (const auto& ranges : elements) {
    if (ranges.empty()) {
      return;
    }
  }
  for (;;) {
    for (std::size_t dim = 0; dim < box.size(); ++dim) {
      box[dim] = elements[dim][at[dim]];
    }
    body(box);
    std::size_t dim = box.size();
    while (dim > 0 && ++at[dim - 1] == elements[dim - 1].size()) {
      at[--dim] = 0;
    }
    if (dim == 0) {
      return;
    }
  }
}

// Returns text such as "[0-3, 8-11] x [0-127]".
std::string elements_text(const ElementRanges& elements);

// Throws Error(usage) if a layout does not fit `ranks` ranks or a tensor of this shape.
void check_layout(const MeshLayout& layout, const std::vector<std::size_t>& shape, int ranks);

}  // namespace unisono::parallel
