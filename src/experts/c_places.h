// The placement of experts in the C interface: all numbers in one array, rank after rank.
#pragma once

#include "unisono/experts.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::c_api {

// `ranks`: of the communicator for which the options are.
ExpertExchangeOptions options_of(const unisono_expert_exchange_options_t* given, int ranks);

}  // namespace unisono::c_api
