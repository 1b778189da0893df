// `unisono bench moe`: compares dispatch and combine of mixtures of experts with the limit of this
// machine and with the textbook implementation, measured alternately in the same run.
#pragma once

#include <string>

#include "bench/moe_exchange.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

TextbookExchange own_exchange(Communicator& comm);

// Returns the exit code: 1 if a result is wrong. Only rank 0 prints. `routing`: a file for
// read_routing(); empty: fixed cases. `json`: JSON Lines instead of the table.
int run_bench_moe(Communicator& comm, const std::string& routing, const TextbookExchange& textbook,
                  bool json = false);

}  // namespace unisono::cli
