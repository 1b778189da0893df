// Encoded moves: which moves of a schedule carry codes instead of f32 (base/move_code.h), and the
// proof of how often these moves round a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/move_code.h"
#include "schedule/schedule.h"

namespace unisono {

// Encodes the moves between different hosts; `hosts` has one number per rank. If all ranks get the
// result, a rank that has the complete result rounds its own copy, in a separate step, before it
// sends the result. So this rank ends with the same value as the ranks that decode the result.
// Nothing else changes. REQUIRES: the schedule is verified.
Schedule encode_moves(const Schedule& schedule, std::span<const int> hosts, MoveCode code);

struct RoundingFault {
  int step = -1;  // -1: at the end
  int chunk = 0;
  std::uint32_t line = 0;  // of the move to blame, 0 unknown
  std::string what = {};   // "an input is rounded twice on its way from rank 1 to rank 2"
};

// Returns at most 100 faults. There is no fault if
// - every input is rounded at most once before the result is complete,
// - the result is rounded at most once afterwards, and
// - all ranks that get a chunk get the same bits.
// If a partial sum is rounded, this counts as one rounding of each of its inputs. A value that is
// already rounded is not rounded again by the same code. The proof follows values by name: two
// cells have the same bits if the same sums and roundings of the same inputs, in the same order,
// produced them; the two sides of an addition may be exchanged. REQUIRES: the schedule is verified.
std::vector<RoundingFault> check_roundings(const Schedule& schedule);

}  // namespace unisono
