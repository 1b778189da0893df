// Random pairs of meshes, and the owner of an element by the definition of a placement, independent
// of the library's arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel::testing {

using Index = std::vector<std::size_t>;

// The axes of one side, independent of the library's text and arithmetic.
struct Drawn {
  std::vector<int> sizes = {};
  std::vector<int> ranks = {};  // by position
  struct Cut {
    std::vector<std::size_t> axes = {};  // ascending; several axes act as one
    AxisPlacement how = {};
  };
  std::vector<Cut> cuts = {};

  std::size_t positions() const { return ranks.size(); }
  std::size_t size(const Cut& cut) const {
    std::size_t size = 1;
    for (const std::size_t axis : cut.axes) {
      size *= static_cast<std::size_t>(sizes[axis]);
    }
    return size;
  }
  std::size_t coordinate(const Cut& cut, std::size_t position) const {
    std::vector<std::size_t> at(sizes.size());
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      at[axis] = position % static_cast<std::size_t>(sizes[axis]);
      position /= static_cast<std::size_t>(sizes[axis]);
    }
    std::size_t coordinate = 0;
    for (const std::size_t axis : cut.axes) {
      coordinate = coordinate * static_cast<std::size_t>(sizes[axis]) + at[axis];
    }
    return coordinate;
  }
  MeshLayout layout() const {
    std::string mesh;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      mesh += (axis == 0 ? "x" : ",x") + std::to_string(axis) + "=" + std::to_string(sizes[axis]);
    }
    MeshLayout made{.mesh = MeshShape::parse(mesh), .ranks = ranks};
    for (const Cut& cut : cuts) {
      made.placements.push_back(cut.how);
    }
    return made;
  }
};

struct Case {
  std::uint32_t seed = 0;
  Index shape = {};
  std::vector<int> hosts = {};
  Drawn from = {};
  Drawn to = {};
};

// Returns the index of a dimension's element in the memory of a position, or nothing.
inline std::optional<std::size_t> owned(const Drawn& side, std::size_t position, std::size_t dim,
                                        std::size_t size, std::size_t index) {
  for (const Drawn::Cut& cut : side.cuts) {
    if (cut.how.placement.kind != Placement::Kind::shard || cut.how.placement.dim != dim) {
      continue;
    }
    const std::size_t ranks = side.size(cut);
    const std::size_t mine = side.coordinate(cut, position);
    const Index sections = cut.how.sections.empty() ? Index{size} : cut.how.sections;
    std::size_t before = 0;  // offset of the section in the memory of this position
    std::size_t length = 0;
    std::optional<std::size_t> found;
    std::size_t start = 0;
    for (const std::size_t section : sections) {
      const std::size_t begin =
          cut.how.parts.empty()
              ? section * mine / ranks
              : std::accumulate(cut.how.parts.begin(),
                                cut.how.parts.begin() + static_cast<std::ptrdiff_t>(mine),
                                std::size_t{0});
      const std::size_t end =
          cut.how.parts.empty() ? section * (mine + 1) / ranks : begin + cut.how.parts[mine];
      if (index >= start + begin && index < start + end) {
        found = before + index - start - begin;
      }
      before += end - begin;
      length += end - begin;
      start += section;
    }
    if (!found) {
      return std::nullopt;
    }
    index = *found;
    size = length;
  }
  return index;
}

inline std::size_t summand_of(const Drawn& side, std::size_t position) {
  std::size_t summand = 0;
  for (const Drawn::Cut& cut : side.cuts) {
    if (cut.how.placement.kind == Placement::Kind::partial) {
      summand = summand * side.size(cut) + side.coordinate(cut, position);
    }
  }
  return summand;
}

inline Index random_parts(std::mt19937& random, std::size_t length, std::size_t parts) {
  Index bounds = {0, length};
  for (std::size_t i = 1; i < parts; ++i) {
    bounds.push_back(random() % (length + 1));
  }
  std::sort(bounds.begin(), bounds.end());
  Index lengths;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    lengths.push_back(bounds[i] - bounds[i - 1]);
  }
  return lengths;
}

inline Drawn draw_side(std::mt19937& random, const Index& shape, int world, bool source) {
  Drawn side;
  int positions = 1;
  const std::size_t axes = 1 + random() % 4;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    int size = 1 + static_cast<int>(random() % 4);
    if (positions * size > world) {
      size = 1;
    }
    side.sizes.push_back(size);
    positions *= size;
  }
  side.ranks.resize(static_cast<std::size_t>(world));
  std::iota(side.ranks.begin(), side.ranks.end(), 0);
  if (random() % 2 == 0) {
    std::shuffle(side.ranks.begin(), side.ranks.end(), random);
  }
  const std::size_t first = random() % static_cast<std::size_t>(world - positions + 1);
  side.ranks = {side.ranks.begin() + static_cast<std::ptrdiff_t>(first),
                side.ranks.begin() + static_cast<std::ptrdiff_t>(first) + positions};
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::set<std::size_t> sharded;
  while (!order.empty()) {
    Drawn::Cut cut{.axes = {order.back()}};
    order.pop_back();
    if (!order.empty() && random() % 6 == 0) {
      cut.axes.push_back(order.back());
      order.pop_back();
      std::sort(cut.axes.begin(), cut.axes.end());
    }
    for (const std::size_t axis : cut.axes) {
      cut.how.axis += (cut.how.axis.empty() ? "x" : ",x") + std::to_string(axis);
    }
    const auto kind = random() % 10;
    if (kind < 2 || (kind < 9 && shape.empty()) || (kind == 9 && !source)) {
      cut.how.placement = Replicate();
      if (random() % 2 == 0) {
        continue;
      }
    } else if (kind == 9) {
      cut.how.placement = Partial();
    } else {
      const std::size_t dim = random() % shape.size();
      cut.how.placement = Shard(dim);
      // The lengths at a second cut differ by rank.
      if (sharded.insert(dim).second && random() % 3 == 0) {
        (random() % 2 == 0 ? cut.how.sections : cut.how.parts) =
            random_parts(random, shape[dim], side.size(cut));
      }
    }
    side.cuts.push_back(cut);
  }
  return side;
}

// `world`: the number of ranks; 0: any.
inline Case draw(std::uint32_t seed, int world = 0) {
  std::mt19937 random(seed);
  Case one{.seed = seed};
  const std::size_t dims = random() % 5;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    one.shape.push_back(random() % 20 == 0 ? 0 : 1 + random() % (dims > 2 ? 5 : 12));
  }
  world = world > 0 ? world : 1 + static_cast<int>(random() % 16);
  const auto per_host = static_cast<unsigned>(1 + random() % 6);
  for (unsigned rank = 0; rank < static_cast<unsigned>(world); ++rank) {
    one.hosts.push_back(static_cast<int>(random() % 8 == 0 ? random() % 4 : rank / per_host));
  }
  one.from = draw_side(random, one.shape, world, true);
  one.to = draw_side(random, one.shape, world, false);
  return one;
}

}  // namespace unisono::parallel::testing
