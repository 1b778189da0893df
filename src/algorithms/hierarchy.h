// Hierarchical algorithms: groups of ranks, groups of groups, and so on.
//
// `local=8x4` makes groups of 8 neighbours, larger groups of 4 of these, and a top level that
// contains all larger groups. A rank's number has one digit per level, the innermost level lowest.
// Two ranks meet at a level if their numbers differ only in that level's digit. So every rank takes
// part at every level, and all ranks of a group use their own links out of the group at the same
// time.
//
// At a level where L ranks meet, a collective over L ranks runs in all groups at the same time:
// recursive halving or doubling if L is a power of two, otherwise a ring. The moves are added
// directly to the larger schedule, without sub(), so building takes time only for the moves, even
// for 10^5 ranks.
#pragma once

#include <array>
#include <source_location>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

class Hierarchy {
 public:
  explicit Hierarchy(Shape shape);

  int ranks() const { return ranks_; }
  int levels() const { return levels_; }
  // The number of ranks that meet at a level, and the product of these numbers over all levels
  // below it.
  int size(int level) const { return sizes_[static_cast<std::size_t>(level)]; }
  int stride(int level) const { return strides_[static_cast<std::size_t>(level)]; }
  int digit(int rank, int level) const { return rank / stride(level) % size(level); }
  int with_digit(int rank, int level, int digit_there) const {
    return rank + (digit_there - digit(rank, level)) * stride(level);
  }
  // Returns the level at which two ranks meet; -1 if they do not meet.
  int meet(int a, int b) const;

 private:
  static constexpr std::size_t kMost = std::tuple_size_v<AlgorithmParameters::Levels> + 1;
  int ranks_ = 1;
  int levels_ = 0;
  std::array<int, kMost> sizes_ = {};
  std::array<int, kMost> strides_ = {};
};

// Returns the default of `local`: the largest divisor of n that is at most the square root of n.
AlgorithmParameters square_groups(int ranks);
// Returns true if the groups divide n.
bool groups_divide(Shape shape);
inline constexpr std::string_view kGroupLimits = "n a multiple of the group size";

// The sends of one rank at a level in one step: to the digit `to`, with the slots [first, first +
// count).
struct LevelSend {
  int to = 0;
  int first = 0;
  int count = 1;
};
int level_steps(int size);
LevelSend reduce_scatter_send(int size, int digit, int step);
LevelSend all_gather_send(int size, int digit, int step);
// Returns true if one of the exchanges above uses this edge.
bool is_level_edge(const Hierarchy& hierarchy, int from, int to);

// Returns the number of steps of a reduce_scatter or an all_gather over all levels.
int exchange_steps(Shape shape);

// Cuts the vector by the digits of its chunks, the innermost level first: at level 0 digit d owns
// the d-th part of the vector, at level 1 the d-th part of that part, and so on. REQUIRES: the
// number of chunks is a multiple of the product of the sizes.
void reduce_scatter_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          int chunks, std::source_location where = std::source_location::current());
void all_gather_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level, int chunks,
                      std::source_location where = std::source_location::current());

// Uses one chunk per rank: chunks are named after ranks, and a rank stands for all ranks that have
// its lower digits.
void reduce_scatter_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          std::source_location where = std::source_location::current());
void all_gather_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                      std::source_location where = std::source_location::current());

// Returns the same messages in compact form, for both ways to name chunks. A level that uses a ring
// is one phase; other levels have one phase per step.
CompactSchedule compact_all_gather(Shape shape);
CompactSchedule compact_reduce_scatter(Shape shape);

}  // namespace unisono::algorithms
