// Proves that a schedule is right: data flow by counting, hazards, progress, in-place safety.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace unisono {

struct Finding {
  enum class Kind : std::uint8_t { structure, data_flow, hazard, claim, progress, in_place };
  Kind kind = Kind::structure;
  int step = -1;  // -1: at the end, or no step
  int rank = -1;
  int chunk = -1;
  std::uint32_t line = 0;  // source line of the move to blame, 0 unknown
  std::string text;        // "step 1: rank 1 counted twice at rank 2 chunk 0"
};

// Empty: the schedule is right for out-of-place buffers. In-place problems are reported only by
// verify_in_place, because the engine can stage the input of such a schedule.
std::vector<Finding> verify(const Schedule& schedule);
std::vector<Finding> verify_in_place(const Schedule& schedule);

// The text with steps counted from 1, as people see them: "step 2: rank 1 counted twice ...".
std::string shown_text(const Finding& finding);

}  // namespace unisono
