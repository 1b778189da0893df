// Runs a program on numbers, with its blocks in a random order, for comparison with the proofs.
#pragma once

#include <cstdint>

#include "msccl/program.h"

namespace unisono::msccl::testing {

// Shares only the program with the proofs. Returns true if every rank ends with the result of a
// plain loop over ranks. Connections hold `room` messages; 0: any number.
bool runs_right(const MscclProgram& program, std::uint32_t seed, bool is_in_place,
                std::size_t room = 0);

}  // namespace unisono::msccl::testing
