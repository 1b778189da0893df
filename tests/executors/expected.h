// What a collective gives, as a plain loop over ranks has it: what runs of programs are compared
// with. It shares nothing with the proofs.
#pragma once

#include <cstdint>
#include <optional>

#include "unisono/types.hpp"

namespace unisono::executors::testing {

// What rank `rank` gives, in launch `launch`, to element `index` of its input: sums of these tell
// who is in.
std::uint64_t contribution(int launch, int rank, int index);

struct Call {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int root = 0;
  int part = 1;  // elements of a rank's part of the vector, where it is cut into parts
  int launch = 0;
};

bool has_input(const Call& call, int rank);

// Element `index` of the output of `rank`; none: it may be anything.
std::optional<std::uint64_t> expected(const Call& call, int rank, int index);

}  // namespace unisono::executors::testing
