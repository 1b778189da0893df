// Why a world ended: of what all its ranks recorded of it, what was said first.
#pragma once

#include <vector>

#include "record/segments.h"

namespace unisono::cli {

struct HeardAbort {
  int rank = 0;  // whose record it is
  const RecordedAbort* what = nullptr;
  double at_ns = 0;  // on the clock that all have; NaN: its clock could not be aligned
};

// Hosts may have different words for one cause. Who said it himself knows better when that was than
// who heard of it. REQUIRES: `heard` is not empty.
const HeardAbort& first_of(const std::vector<HeardAbort>& heard);

}  // namespace unisono::cli
