// The final state of a schedule as one number, so that two programs that play the same schedule can
// compare their results.
#pragma once

#include <cstdint>
#include <string>

#include "schedule/schedule.h"

namespace unisono {

// Hashes the cells with FNV-1a (32 bits), by chunk, then by rank, output before scratch. A cell
// that nothing wrote is the byte 0. Any other cell is the byte 1, followed by one byte per counter.
// If the collective reduces or is a barrier, there is a counter per rank: how often the rank's
// contribution is in the cell. Otherwise there is one counter, for the chunk's only contribution.
// Counters stop at 255. REQUIRES: the structure of the schedule is correct.
std::uint32_t final_state_hash(const Schedule& schedule);

// Returns the hash as eight hexadecimal digits.
std::string final_state_text(const Schedule& schedule);

}  // namespace unisono
