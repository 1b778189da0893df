// Errors in a program that no single element of its XML shows.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "msccl/program.h"

namespace unisono::msccl {

// The ends of connections: GPU, peer, channel, whether the GPU sends.
using Connections = std::set<std::tuple<int, int, int, bool>>;

// Empty: nothing. `gpus`: how many it is to have; `connections`: those of all its thread blocks.
std::string flaw_of_whole(const MscclProgram& program, int gpus, const Connections& connections);

}  // namespace unisono::msccl
