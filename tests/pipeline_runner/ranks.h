// Ranks of one job that connect to each other, at the places that UNISONO_TEST_WORLD selects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::parallel::testing {

using RankBody = std::function<void(Communicator&)>;

inline comm::testing::Body connected(int ranks, const RankBody& body) {
  const std::string job = comm::testing::unique_name("pipeline");
  return [=](int rank) -> std::string {
    ConnectOptions options = comm::testing::options_for(rank, ranks, job);
    options.timeout_ms = 60'000;
    Communicator comm = Communicator::connect(options);
    body(comm);
    return "";
  };
}

// Returns the error of each rank, if any.
inline std::vector<std::string> as_processes(int ranks, const RankBody& body) {
  return comm::testing::as_processes(ranks, connected(ranks, body));
}
inline std::vector<std::string> as_threads(int ranks, const RankBody& body) {
  return comm::testing::as_threads(ranks, connected(ranks, body));
}

}  // namespace unisono::parallel::testing
