// Elements of a tensor as lists of ranges: one list for each dimension, in ascending order, without
// ranges that touch or are empty.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

std::size_t length_of(const std::vector<Range>& ranges);

// Appends a range, which begins at or behind the end of the last one.
void append(std::vector<Range>& ranges, Range range);

// Returns `count` elements of `ranges` from the one at index `first` on.
std::vector<Range> part_of(const std::vector<Range>& ranges, std::size_t first, std::size_t count);

// Returns the elements that both lists have.
std::vector<Range> common(const std::vector<Range>& a, const std::vector<Range>& b);

// Returns how many elements of `ranges` lie before `position`.
std::size_t index_in(const std::vector<Range>& ranges, std::size_t position);

// Cuts into parts of at most `most` elements, as few as possible along the outermost dimensions.
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

// "[0-3, 8-11] x [0-127]".
std::string elements_text(const ElementRanges& elements);

// Throws usage if a layout cannot be one of `ranks` ranks, or does not fit a tensor of this shape.
void check_layout(const MeshLayout& layout, const std::vector<std::size_t>& shape, int ranks);

}  // namespace unisono::parallel
