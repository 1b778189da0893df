// Encoded moves: which moves of a schedule carry codes in place of f32 (base/move_code.h), and the
// proof of how often anything is rounded by them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/move_code.h"
#include "schedule/schedule.h"

namespace unisono {

// Encodes the moves between different hosts; `hosts` has one number for each rank. Where all ranks
// get the result, a rank that has it complete rounds its own in a step of its own before it sends
// it, so that it ends with what the others decode. Nothing else changes. REQUIRES: the schedule is
// verified.
Schedule encode_moves(const Schedule& schedule, std::span<const int> hosts, MoveCode code);

struct RoundingFault {
  int step = -1;  // -1: at the end
  int chunk = 0;
  std::uint32_t line = 0;  // of the move to blame, 0 unknown
  std::string what = {};   // "an input is rounded twice on its way from rank 1 to rank 2"
};

// Empty: every input is rounded at most once before the result is complete, the result at most once
// after, and all ranks that get a chunk get the same bits. Sums of some inputs that are rounded
// count as one rounding of each. Follows the values by name: two cells are the same bits where they
// were made by the same sums and roundings of the same inputs, in the same order but for the two
// sides of one addition. What is rounded already is not rounded again by the same code. At most 100
// faults. REQUIRES: the schedule is verified.
std::vector<RoundingFault> check_roundings(const Schedule& schedule);

}  // namespace unisono
