// Known inputs, and whether an operation gave the right output for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peers/peer.h"

namespace unisono::bench {

std::size_t input_elements(const Operation& operation, int ranks);
std::size_t output_elements(const Operation& operation, int ranks);

// Small integers, whose sums every dtype holds exactly.
void fill_input(const Operation& operation, int rank, int ranks);
// Elements of the output that are wrong.
std::uint64_t count_wrong(const Operation& operation, int rank, int ranks);

}  // namespace unisono::bench
