// Hierarchical algorithms: groups of ranks, groups of groups, and so on.
//
// `local=8x4` makes groups of 8 neighbours, larger groups of 4 of these, and a top level of as many
// of those as there are. The number of a rank has one digit for each level, the innermost lowest;
// ranks meet at a level if they differ in that digit only. So every rank takes part at every level,
// and all ranks of a group use their own way out of it at the same time.
//
// At each level a collective of that many ranks runs in all groups at once: recursive halving or
// doubling where they are a power of two, a ring where not. The parts are emitted straight into the
// larger schedule, not placed there with sub(): that costs nothing but the moves, also for 10^5
// ranks.
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
  // Ranks that meet at a level; the product of those below it.
  int size(int level) const { return sizes_[static_cast<std::size_t>(level)]; }
  int stride(int level) const { return strides_[static_cast<std::size_t>(level)]; }
  int digit(int rank, int level) const { return rank / stride(level) % size(level); }
  int with_digit(int rank, int level, int digit_there) const {
    return rank + (digit_there - digit(rank, level)) * stride(level);
  }
  // The level at which two ranks meet, -1 if they do not.
  int meet(int a, int b) const;

 private:
  static constexpr std::size_t kMost = std::tuple_size_v<AlgorithmParameters::Levels> + 1;
  int ranks_ = 1;
  int levels_ = 0;
  std::array<int, kMost> sizes_ = {};
  std::array<int, kMost> strides_ = {};
};

// The defaults of `local`: groups as near to the square root of n as divides it.
AlgorithmParameters square_groups(int ranks);
// Do the groups divide n?
bool groups_divide(Shape shape);
inline constexpr std::string_view kGroupLimits = "n a multiple of the group size";

// The sends of one rank of a level in one step: to the digit `to`, the slots [first, first +
// count).
struct LevelSend {
  int to = 0;
  int first = 0;
  int count = 1;
};
int level_steps(int size);
LevelSend reduce_scatter_send(int size, int digit, int step);
LevelSend all_gather_send(int size, int digit, int step);
// Does an exchange of the above go this way?
bool is_level_edge(const Hierarchy& hierarchy, int from, int to);

// Steps of reduce_scatter or all_gather at all levels.
int exchange_steps(Shape shape);

// The vector is cut by the digits of its chunks, the innermost level first: at level 0 digit d owns
// the d-th part of all, at level 1 a part of that, and so on. Chunks must be a multiple of the
// sizes.
void reduce_scatter_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          int chunks, std::source_location where = std::source_location::current());
void all_gather_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level, int chunks,
                      std::source_location where = std::source_location::current());

// With one chunk for each rank: chunks are named after ranks, and a rank stands for those that have
// its digits below.
void reduce_scatter_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          std::source_location where = std::source_location::current());
void all_gather_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                      std::source_location where = std::source_location::current());

// The same messages in short, for either way to name chunks: a level that takes a ring is one
// phase, others have a phase for each step.
CompactSchedule compact_all_gather(Shape shape);
CompactSchedule compact_reduce_scatter(Shape shape);

}  // namespace unisono::algorithms
