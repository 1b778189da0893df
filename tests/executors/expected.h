// The expected result of a collective, computed by a plain loop over ranks, for comparison with
// runs of programs. It shares nothing with the proofs.
#pragma once

#include <cstdint>
#include <optional>

#include "unisono/types.hpp"

namespace unisono::executors::testing {

// Returns the contribution of rank `rank`, in launch `launch`, to element `index` of its input:
// sums of contributions show which ranks are included.
std::uint64_t contribution(int launch, int rank, int index);

struct Call {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int root = 0;
  int part = 1;  // elements of a rank's part of the vector, if it is cut into parts
  int launch = 0;
};

bool has_input(const Call& call, int rank);

// Returns element `index` of the output of `rank`; none: any value is correct.
std::optional<std::uint64_t> expected(const Call& call, int rank, int index);

}  // namespace unisono::executors::testing
