// Fills inputs with known values, and checks the outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peers/peer.h"

namespace unisono::bench {

std::size_t input_elements(const Operation& operation, int ranks);
std::size_t output_elements(const Operation& operation, int ranks);

// Fills the input with small integers, whose sums are exact in every dtype.
void fill_input(const Operation& operation, int rank, int ranks);
// Returns the number of wrong output elements.
std::uint64_t count_wrong(const Operation& operation, int rank, int ranks);

}  // namespace unisono::bench
