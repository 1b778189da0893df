// `unisono bench moe`: dispatch and combine of mixtures of experts against what this machine allows
// and the textbook way, measured in the same run, in turn.
#pragma once

#include "unisono/communicator.hpp"

namespace unisono::cli {

// Returns the exit code: 1 if a result is wrong. Rank 0 speaks.
int run_bench_moe(Communicator& comm);

}  // namespace unisono::cli
