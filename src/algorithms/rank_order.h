// Reduction in rank order: the shape that every flat reduction has.
//
// At an owner, the contributions of ranks 0, 1, ..., n-1 go into one scratch cell, one step each,
// always from the input of the rank: the first replaces, the others reduce, the owner's own among
// them as a local move. A last local move copies the scratch cell to the output. So the result has
// the same bits whoever computes it, no output is written before all inputs of the owner are read
// (in place), and the engine can make one pass over n sources of the chain.
#pragma once

#include <source_location>
#include <span>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

struct Owned {
  int rank = 0;
  int chunk = 0;
};

constexpr int rank_order_steps(int ranks) {
  return ranks == 1 ? 0 : ranks + 1;
}

inline void reduce_in_rank_order(ScheduleBuilder& schedule, int ranks,
                                 std::span<const Owned> owners,
                                 std::source_location where = std::source_location::current()) {
  if (ranks == 1) {
    return;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.step();
    for (const Owned& owner : owners) {
      schedule.move({.from = rank,
                     .to = owner.rank,
                     .chunk = owner.chunk,
                     .combine = rank == 0 ? Combine::replace : Combine::reduce,
                     .source = Place::input,
                     .target = Place::scratch},
                    where);
    }
  }
  schedule.step();
  for (const Owned& owner : owners) {
    schedule.move({.from = owner.rank,
                   .to = owner.rank,
                   .chunk = owner.chunk,
                   .source = Place::scratch,
                   .target = Place::output},
                  where);
  }
}

}  // namespace unisono::algorithms
