// The amount of work of a collective, without speeds: the terms of a fitted model.
#pragma once

#include <string_view>

#include "unisono/types.hpp"

namespace unisono::cost {

struct Work {
  double messages = 0;  // one after the other
  double share = 0;     // bytes sent on the way, as a part of the vector
  double reduced = 0;   // bytes reduced on the way, likewise
  // The same where the switch reduces or multiplies: one hop up, one down, whatever the ranks.
  // None for fewer than four ranks, which do better without.
  double switch_messages = 0;
  double switch_share = 0;
};

// The closed formula of a catalogue algorithm. Without an algorithm ("", the library chose itself),
// a ring: parts go around in all_reduce, all_gather and reduce_scatter, the vector is pipelined
// along a chain in broadcast and reduce, every rank sends to every other in the rest. Throws
// Error(usage) if there is no such algorithm, or it cannot serve `ranks`.
Work work_of(Collective collective, std::string_view algorithm, int ranks);

}  // namespace unisono::cost
