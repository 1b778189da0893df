// The amount of work of a collective, without speeds: the terms of a fitted model.
#pragma once

#include <string_view>

#include "unisono/types.hpp"

namespace unisono::cost {

struct Work {
  double messages = 0;  // in sequence
  double share = 0;     // bytes sent along the path, as a share of the vector
  double reduced = 0;   // bytes reduced along the path, as a share of the vector
  // The same numbers for a switch that reduces or multiplies: one hop up and one hop down, for any
  // number of ranks. Zero below four ranks, which are faster without the switch.
  double switch_messages = 0;
  double switch_share = 0;
};

// Returns the closed formula of a catalogue algorithm.
// Without an algorithm ("": the library chose it), assumes a ring in all_reduce, all_gather and
// reduce_scatter, a pipelined chain in broadcast and reduce, and direct messages between all ranks
// in the other collectives.
// Throws Error(usage) if there is no such algorithm, or if it cannot serve `ranks`.
Work work_of(Collective collective, std::string_view algorithm, int ranks);

}  // namespace unisono::cost
