// The worlds of a run: their numbers, the same for all of its ranks, and why each of them ended.
#pragma once

#include <vector>

#include "trace/rank_record.h"

namespace unisono::trace {

// By record: how many worlds there were before. A job counts its own; programs that a rank runs one
// after the other, and a program that connects again, each begin at 0: theirs are behind all of
// those before. Records of one rank are in the order in which they were made.
std::vector<int> worlds_of(const std::vector<RankRecord>& records);

struct ReceivedAbort {
  int rank = 0;  // whose record it is
  const RecordedAbort* what = nullptr;
  double at_ns = 0;  // on the clock that all have; NaN: its clock could not be aligned
};

// Returns the earliest report. Hosts may have different texts for one cause, and a rank that
// reported it first knows the time better than one that was told. REQUIRES: `heard` is not empty.
const ReceivedAbort& first_of(const std::vector<ReceivedAbort>& heard);

}  // namespace unisono::trace
