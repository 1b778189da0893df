// Expert placement in the C interface: one array with the experts of all ranks, rank by rank.
#pragma once

#include "unisono/experts.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::c_api {

// Converts options. `ranks`: size of the communicator.
ExpertExchangeOptions options_of(const unisono_expert_exchange_options_t* given, int ranks);

}  // namespace unisono::c_api
