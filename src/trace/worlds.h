// The worlds of a run: numbers that all ranks share, and why each world ended.
#pragma once

#include <vector>

#include "trace/rank_record.h"

namespace unisono::trace {

// Returns, for each record, the number of earlier worlds of the run. A job numbers its own worlds
// from 0. If a rank runs several programs one after the other, or a program connects again, the
// numbers begin at 0 again; these worlds come after all earlier ones. REQUIRES: records of one rank
// are in the order in which they were made.
std::vector<int> worlds_of(const std::vector<RankRecord>& records);

struct ReceivedAbort {
  int rank = 0;  // rank of the record
  const RecordedAbort* what = nullptr;
  double at_ns = 0;  // in the common clock; NaN: the rank's clock could not be aligned
};

// Returns the earliest report. Hosts may have different texts for one cause, and a rank that
// reported the cause itself has a better time than a rank that received the report. REQUIRES:
// `heard` is not empty.
const ReceivedAbort& first_of(const std::vector<ReceivedAbort>& heard);

}  // namespace unisono::trace
