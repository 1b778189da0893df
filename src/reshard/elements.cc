#include "reshard/elements.h"

#include <algorithm>
#include <limits>

#include "base/words.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

[[noreturn]] void refuse_layout(const MeshLayout& layout, const std::string& what,
                                const std::string& next) {
  throw Error(ErrorCode::usage, "layout " + in_quotes(layout.text()) + ": " + what + "\n" + next);
}

std::size_t sum_of(const std::vector<std::size_t>& lengths) {
  std::size_t sum = 0;
  for (const std::size_t length : lengths) {
    // Saturates: no dimension equals a sum beyond 64 bits.
    sum = length > std::numeric_limits<std::size_t>::max() - sum
              ? std::numeric_limits<std::size_t>::max()
              : sum + length;
  }
  return sum;
}

// Returns the part of one dimension that belongs to a position of the axis.
std::vector<Range> shard(const MeshLayout& layout, const AxisPlacement& how,
                         const std::vector<Range>& ranges, int position) {
  const std::size_t length = length_of(ranges);
  const int axis = layout.mesh.size(how.axis);
  const int coordinate = layout.mesh.coordinate(position, how.axis);
  const auto here = [&] {
    return "dimension " + std::to_string(how.placement.dim) + " has " + std::to_string(length) +
           " elements for axis " + how.axis + " on rank " +
           std::to_string(layout.rank_at(position));
  };
  if (!how.parts.empty()) {
    if (how.parts.size() != static_cast<std::size_t>(axis) || sum_of(how.parts) != length) {
      refuse_layout(layout,
                    here() + ", and its " + std::to_string(how.parts.size()) + " parts have " +
                        std::to_string(sum_of(how.parts)),
                    "give " + std::to_string(axis) + " parts that add up to the dimension");
    }
    const auto end = how.parts.begin() + coordinate;
    return part_of(ranges, sum_of({how.parts.begin(), end}), *end);
  }
  const std::vector<std::size_t> whole = {length};
  const std::vector<std::size_t>& sections = how.sections.empty() ? whole : how.sections;
  if (sum_of(sections) != length) {
    refuse_layout(layout, here() + ", and its sections have " + std::to_string(sum_of(sections)),
                  "let the sections add up to what the axes before leave of the dimension");
  }
  std::vector<Range> result;
  std::size_t first = 0;
  for (const std::size_t section : sections) {
    const Range mine = shard_range(section, axis, coordinate);
    for (const Range& range : part_of(ranges, first + mine.first, mine.count)) {
      append(result, range);
    }
    first += section;
  }
  return result;
}

std::string ranges_text(const std::vector<Range>& ranges) {
  std::string text;
  for (const Range& range : ranges) {
    text += (text.empty() ? "" : ", ") + std::to_string(range.first);
    if (range.count > 1) {
      text += "-" + std::to_string(range.first + range.count - 1);
    }
  }
  return "[" + text + "]";
}

void check_axes(const MeshLayout& layout) {
  std::vector<std::string> used;
  for (const AxisPlacement& how : layout.placements) {
    std::string names = layout.mesh.canonical(how.axis) + ",";
    while (!names.empty()) {
      const std::size_t end = names.find(',');
      const std::string name = names.substr(0, end);
      if (std::find(used.begin(), used.end(), name) != used.end()) {
        refuse_layout(layout, "axis " + name + " has two placements", "give each axis one");
      }
      used.push_back(name);
      names.erase(0, end + 1);
    }
  }
}

}  // namespace

std::size_t length_of(const std::vector<Range>& ranges) {
  std::size_t length = 0;
  for (const Range& range : ranges) {
    length += range.count;
  }
  return length;
}

std::size_t count_of(const ElementRanges& elements) {
  std::size_t count = 1;
  for (const auto& ranges : elements) {
    count *= length_of(ranges);
  }
  return count;
}

std::vector<std::size_t> shape_of(const ElementRanges& elements) {
  std::vector<std::size_t> shape;
  for (const auto& ranges : elements) {
    shape.push_back(length_of(ranges));
  }
  return shape;
}

void append(std::vector<Range>& ranges, Range range) {
  if (range.count == 0) {
    return;
  }
  if (!ranges.empty() && ranges.back().first + ranges.back().count == range.first) {
    ranges.back().count += range.count;
  } else {
    ranges.push_back(range);
  }
}

std::vector<Range> part_of(const std::vector<Range>& ranges, std::size_t first, std::size_t count) {
  std::vector<Range> part;
  for (const Range& range : ranges) {
    if (first >= range.count) {
      first -= range.count;
      continue;
    }
    const std::size_t taken = std::min(count, range.count - first);
    append(part, {.first = range.first + first, .count = taken});
    count -= taken;
    first = 0;
  }
  return part;
}

std::vector<Range> common(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::vector<Range> both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::size_t a_end = a[i].first + a[i].count;
    const std::size_t b_end = b[j].first + b[j].count;
    const std::size_t first = std::max(a[i].first, b[j].first);
    const std::size_t end = std::min(a_end, b_end);
    if (first < end) {
      append(both, {.first = first, .count = end - first});
    }
    ++(a_end < b_end ? i : j);
  }
  return both;
}

std::size_t index_in(const std::vector<Range>& ranges, std::size_t position) {
  std::size_t index = 0;
  for (const Range& range : ranges) {
    if (position < range.first + range.count) {
      return index + (position > range.first ? position - range.first : 0);
    }
    index += range.count;
  }
  return index;
}

std::vector<ElementRanges> cut(const ElementRanges& elements, std::size_t most) {
  const std::size_t count = count_of(elements);
  const auto longest = std::find_if(elements.begin(), elements.end(),
                                    [](const auto& ranges) { return length_of(ranges) > 1; });
  if (count <= std::max<std::size_t>(most, 1) || longest == elements.end()) {
    return {elements};
  }
  const auto dim = static_cast<std::size_t>(longest - elements.begin());
  const std::size_t length = length_of(*longest);
  const std::size_t pieces = std::min(length, (count - 1) / std::max<std::size_t>(most, 1) + 1);
  std::vector<ElementRanges> all;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t first = length / pieces * i + length % pieces * i / pieces;
    const std::size_t end = length / pieces * (i + 1) + length % pieces * (i + 1) / pieces;
    ElementRanges part = elements;
    part[dim] = part_of(elements[dim], first, end - first);
    for (ElementRanges& smaller : cut(part, most)) {
      all.push_back(std::move(smaller));
    }
  }
  return all;
}

std::string elements_text(const ElementRanges& elements) {
  std::string text;
  for (const auto& ranges : elements) {
    text += (text.empty() ? "" : " x ") + ranges_text(ranges);
  }
  return text.empty() ? "[]" : text;
}

ElementRanges elements_at(const MeshLayout& layout, std::span<const std::size_t> shape,
                          int position) {
  ElementRanges elements;
  for (const std::size_t size : shape) {
    elements.emplace_back();
    append(elements.back(), {.first = 0, .count = size});
  }
  for (const AxisPlacement& how : layout.placements) {
    if (how.placement.kind != Placement::Kind::shard) {
      continue;
    }
    if (how.placement.dim >= elements.size()) {
      refuse_layout(layout,
                    "axis " + how.axis + " shards dimension " + std::to_string(how.placement.dim) +
                        " of a tensor with " + std::to_string(elements.size()) + " dimensions",
                    "dimensions count from 0");
    }
    std::vector<Range>& ranges = elements[how.placement.dim];
    ranges = shard(layout, how, ranges, position);
  }
  return elements;
}

void check_layout(const MeshLayout& layout, const std::vector<std::size_t>& shape, int ranks) {
  check_axes(layout);
  if (!layout.ranks.empty() &&
      layout.ranks.size() != static_cast<std::size_t>(layout.mesh.ranks())) {
    refuse_layout(layout,
                  "the mesh has " + std::to_string(layout.mesh.ranks()) + " positions, and " +
                      std::to_string(layout.ranks.size()) + " ranks are named",
                  "name one rank for each position");
  }
  std::vector<int> named;
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    const int rank = layout.rank_at(position);
    if (rank < 0 || rank >= ranks) {
      refuse_layout(layout,
                    "rank " + std::to_string(rank) + " does not exist among " +
                        std::to_string(ranks) + " ranks",
                    "ranks are those of the communicator, from 0");
    }
    named.push_back(rank);
  }
  std::sort(named.begin(), named.end());
  const auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice != named.end()) {
    refuse_layout(layout, "rank " + std::to_string(*twice) + " is at two positions",
                  "name each rank once");
  }
  for (const AxisPlacement& how : layout.placements) {
    const bool shard = how.placement.kind == Placement::Kind::shard;
    if (!shard && (!how.sections.empty() || !how.parts.empty())) {
      refuse_layout(layout, "axis " + how.axis + " has sections or parts, but is not sharded",
                    "leave them out");
    }
    if (!how.sections.empty() && !how.parts.empty()) {
      refuse_layout(layout, "axis " + how.axis + " has sections and parts", "give one of them");
    }
  }
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    static_cast<void>(elements_at(layout, shape, position));
  }
}

}  // namespace unisono::parallel
