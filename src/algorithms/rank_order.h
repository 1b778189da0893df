// Reduction in rank order, which every flat reduction uses.
//
// The owner of a chunk receives the inputs of ranks 0, 1, ..., n-1 into one scratch cell, one input
// per step. The input of rank 0 replaces the cell's value, and the other inputs are added to it.
// The owner's own input is a local move. A last local move copies the scratch cell to the output.
// Therefore
//
//   - the result has the same bits on every owner;
//   - an owner writes no output before it has read all of its inputs, so calls in place are right;
//   - the engine can read all n inputs in one pass.
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
