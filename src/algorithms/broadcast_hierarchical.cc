// Hierarchical broadcast: the vector is scattered in the root's groups; each rank there broadcasts
// its part to the ranks at the same place in the other groups; every group gathers the parts.
//
//   steps    each level of L ranks below the top adds L-1 + log2(L) if L is a power of two,
//            otherwise 2(L-1); the top level of m groups adds ceil(log2(m))
//   sent     2(C-1) + ceil(log2(m)) chunks by the root, with C = n/m ranks per group. Every rank of
//            the root's group sends one part to the other groups
//   cost     (steps)*alpha + (2(C-1) + ceil(log2(m)))/C * S*beta
//   scratch  none
//   order    nothing is summed
//   limits   n a multiple of the groups; in place. No rank receives data that it already has
//   source   Traeff and Hunold, IEEE CLUSTER 2020
#include <vector>

#include "algorithms/hierarchy.h"

namespace unisono::algorithms {
namespace {

// The chunks that each rank has.
class Held {
 public:
  Held(int ranks, int chunks)
      : chunks_(chunks),
        held_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(chunks), false) {}

  bool has(int rank, int chunk) const { return held_[at(rank, chunk)]; }
  void take(int rank, int first, int count) {
    for (int chunk = first; chunk < first + count; ++chunk) {
      held_[at(rank, chunk)] = true;
    }
  }

 private:
  std::size_t at(int rank, int chunk) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(chunks_) +
           static_cast<std::size_t>(chunk);
  }
  int chunks_;
  std::vector<bool> held_;
};

class Builder {
 public:
  explicit Builder(Shape shape)
      : hierarchy_(shape),
        root_(shape.root),
        top_(hierarchy_.levels() - 1),
        chunks_(hierarchy_.stride(top_)),
        schedule_(Collective::broadcast,
                  {.ranks = shape.ranks, .chunks = chunks_, .root = shape.root}),
        held_(shape.ranks, chunks_) {
    held_.take(root_, 0, chunks_);
  }

  Schedule run() && {
    for (int level = 0; level < top_; ++level) {
      scatter(level);
    }
    broadcast();
    for (int level = top_ - 1; level >= 0; --level) {
      gather(level);
    }
    return std::move(schedule_).build();
  }

 private:
  // Returns the ranks that have their part of the level below, in the root's groups of this level
  // and above.
  std::vector<int> holders(int level) const {
    std::vector<int> ranks;
    const int block = hierarchy_.stride(level);
    for (int below = 0; below < block; ++below) {
      ranks.push_back(root_ / block * block + below);
    }
    return ranks;
  }

  // Returns the first chunk of the range that a rank's digits up to a level select.
  int first_chunk(int rank, int levels) const {
    int first = 0;
    int width = chunks_;
    for (int level = 0; level < levels; ++level) {
      width /= hierarchy_.size(level);
      first += hierarchy_.digit(rank, level) * width;
    }
    return first;
  }
  int width(int levels) const { return chunks_ / hierarchy_.stride(levels); }

  void scatter(int level) {
    schedule_.phase("scatter " + std::to_string(level));
    const int size = hierarchy_.size(level);
    for (int apart = 1; apart < size; ++apart) {
      schedule_.step();
      for (const int rank : holders(level)) {
        const int to =
            hierarchy_.with_digit(rank, level, (hierarchy_.digit(rank, level) + apart) % size);
        const int first = first_chunk(to, level + 1);
        held_.take(to, first, width(level + 1));
        schedule_.move({.from = rank, .to = to, .chunk = first, .chunks = width(level + 1)});
      }
    }
  }

  void broadcast() {
    schedule_.phase("broadcast");
    const int groups = hierarchy_.size(top_);
    const int first = hierarchy_.digit(root_, top_);
    for (int hop = widest_hop(groups); hop >= 1; hop /= 2) {
      schedule_.step();
      for (int position = 0; position + hop < groups; position += 2 * hop) {
        for (int rank = 0; rank < chunks_; ++rank) {
          const int to = hierarchy_.with_digit(rank, top_, (first + position + hop) % groups);
          held_.take(to, first_chunk(to, top_), 1);
          schedule_.move({.from = hierarchy_.with_digit(rank, top_, (first + position) % groups),
                          .to = to,
                          .chunk = first_chunk(to, top_)});
        }
      }
    }
  }

  void gather(int level) {
    schedule_.phase("all_gather " + std::to_string(level));
    const int size = hierarchy_.size(level);
    for (int step = 0; step < level_steps(size); ++step) {
      schedule_.step();
      for (int rank = 0; rank < hierarchy_.ranks(); ++rank) {
        const LevelSend sent = all_gather_send(size, hierarchy_.digit(rank, level), step);
        const int first = first_chunk(rank, level) + sent.first * width(level + 1);
        move_missing(rank, hierarchy_.with_digit(rank, level, sent.to), first,
                     first + sent.count * width(level + 1));
      }
    }
  }

  // Moves the chunks [first, end), except those that `to` has already.
  void move_missing(int from, int to, int first, int end) {
    while (first < end) {
      int next = first;
      while (next < end && !held_.has(to, next)) {
        ++next;
      }
      schedule_.move({.from = from, .to = to, .chunk = first, .chunks = next - first});
      held_.take(to, first, next - first);
      first = next + 1;
    }
  }

  Hierarchy hierarchy_;
  int root_;
  int top_;
  int chunks_;
  ScheduleBuilder schedule_;
  Held held_;
};

int steps_broadcast_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  const int top = hierarchy.levels() - 1;
  int steps = ceil_log2(hierarchy.size(top));
  for (int level = 0; level < top; ++level) {
    steps += hierarchy.size(level) - 1 + level_steps(hierarchy.size(level));
  }
  return steps;
}

int chunks_sent_broadcast_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  const int top = hierarchy.levels() - 1;
  return 2 * (hierarchy.stride(top) - 1) + ceil_log2(hierarchy.size(top));
}

}  // namespace

extern constinit const Algorithm broadcast_hierarchical{
    .name = "hierarchical",
    .collective = Collective::broadcast,
    .summary = "parts of the root's group go out side by side; least bytes between groups",
    .source = "Traeff and Hunold, IEEE CLUSTER 2020",
    .build = [](Shape shape) { return Builder(shape).run(); },
    .steps = steps_broadcast_hierarchical,
    .chunks_sent = chunks_sent_broadcast_hierarchical,
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Hierarchy hierarchy(shape);
          return steps_broadcast_hierarchical(shape) * t.alpha +
                 chunks_sent_broadcast_hierarchical(shape) * t.beta /
                     hierarchy.stride(hierarchy.levels() - 1);
        },
    .edge = [](Shape shape, int from, int to) { return Hierarchy(shape).meet(from, to) >= 0; },
    .supports = groups_divide,
    .limits = kGroupLimits,
    .defaults = square_groups};

}  // namespace unisono::algorithms
