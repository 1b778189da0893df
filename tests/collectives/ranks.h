// Runs a body on a number of ranks, as threads of this process or as separate processes.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {

enum class Ranks : std::uint8_t { threads, processes };

// A rank returns its mistake, or an empty text.
using RankBody = std::function<std::string(Communicator&)>;

inline ConnectOptions test_options(int rank, int ranks, const std::string& job) {
  ConnectOptions options = comm::testing::options_for(rank, ranks, job);
  options.timeout_ms = 60'000;
  return options;
}

// Returns each rank's result. REQUIRES, for processes: this process has no other threads now.
inline std::vector<std::string> on_ranks(Ranks kind, int ranks, const RankBody& body) {
  const std::string job = comm::testing::unique_name("collectives");
  const auto one = [&](int rank) {
    Communicator communicator = Communicator::connect(test_options(rank, ranks, job));
    return body(communicator);
  };
  return kind == Ranks::threads ? comm::testing::as_threads(ranks, one)
                                : comm::testing::as_processes(ranks, one);
}

inline const char* to_string(Ranks kind) {
  return kind == Ranks::threads ? "threads" : "processes";
}

}  // namespace unisono::testing
