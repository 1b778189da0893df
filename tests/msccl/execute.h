// Runs a program on numbers, its blocks in a random order: what the proofs are compared with.
#pragma once

#include <cstdint>

#include "msccl/program.h"

namespace unisono::msccl::testing {

// Shares nothing with the proofs but the program itself. True: every rank has, at the end, what a
// plain loop over ranks gives. Connections hold `room` messages, 0: any number.
bool runs_right(const MscclProgram& program, std::uint32_t seed, bool is_in_place,
                std::size_t room = 0);

}  // namespace unisono::msccl::testing
