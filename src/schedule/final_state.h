// The final state of a schedule as one number, so that two programs that play the same schedule can
// compare it.
#pragma once

#include <cstdint>
#include <string>

#include "schedule/schedule.h"

namespace unisono {

// FNV-1a (32 bits) over the cells, by chunk, then by rank, output before scratch. A cell is one
// byte, 0 where nothing wrote it, else 1 and one byte for each count: how often each rank's
// contribution is in it where the collective reduces or is a barrier, else how often the chunk's
// only one is. Counts stop at 255. REQUIRES: the structure of the schedule is right.
std::uint32_t final_state_hash(const Schedule& schedule);

// Eight hexadecimal digits.
std::string final_state_text(const Schedule& schedule);

}  // namespace unisono
