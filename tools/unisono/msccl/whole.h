// Errors in a program that no single element of its XML shows.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "msccl/program.h"

namespace unisono::msccl {

// The ends of connections: GPU, peer, channel, and true if the GPU sends.
using Connections = std::set<std::tuple<int, int, int, bool>>;

// Returns the first error; empty: there is none. `gpus`: the declared number of GPUs;
// `connections`: those of all thread blocks.
std::string flaw_of_whole(const MscclProgram& program, int gpus, const Connections& connections);

}  // namespace unisono::msccl
