// Moves that scan and exclusive_scan share.
#pragma once

#include <source_location>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

// Hillis and Steele's scan of the outputs of ranks `first` to n-1: at distance 1, 2, 4, ... every
// rank adds the sum of the rank before it to its own. So each rank's output is always a sum over
// neighbouring ranks, and the sum of lower ranks is the source of the move.
inline void scan_by_doubling(ScheduleBuilder& schedule, int first, int ranks,
                             std::source_location where = std::source_location::current()) {
  for (int distance = 1; distance < ranks - first; distance *= 2) {
    schedule.step();
    for (int rank = first; rank + distance < ranks; ++rank) {
      schedule.move({.from = rank, .to = rank + distance, .combine = Combine::reduce}, where);
    }
  }
}

// Every rank but 0 adds the inputs of its terms in rank order, as in rank_order.h.
inline void scan_in_rank_order(ScheduleBuilder& schedule, Collective collective, int ranks,
                               std::source_location where = std::source_location::current()) {
  for (int from = 0; from < ranks; ++from) {
    schedule.step();
    for (int to = 1; to < ranks; ++to) {
      if (contributes(collective, from, to)) {
        schedule.move({.from = from,
                       .to = to,
                       .combine = from == 0 ? Combine::replace : Combine::reduce,
                       .source = Place::input,
                       .target = Place::scratch},
                      where);
      }
    }
  }
  if (contributes(collective, ranks - 1, ranks - 1)) {
    schedule.step();
  }
  for (int rank = 1; rank < ranks; ++rank) {
    schedule.move({.from = rank, .to = rank, .source = Place::scratch, .target = Place::output},
                  where);
  }
}

}  // namespace unisono::algorithms
