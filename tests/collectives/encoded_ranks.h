// Ranks on several hosts, for calls with a max_error: their inputs, and their reports.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "ranks.h"
#include "unisono/error.hpp"

namespace unisono::testing {

using Floats = std::vector<float>;
using Hosts = std::vector<int>;  // by rank

inline Hosts one_each(int ranks) {
  Hosts hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(rank);
  }
  return hosts;
}

inline Floats draw(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 31 + 5);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

inline std::vector<std::string> on_hosts(const Hosts& hosts, const RankBody& body,
                                         const ConnectOptions& given = {}) {
  const std::string job = comm::testing::unique_name("encoded");
  const auto ranks = static_cast<int>(hosts.size());
  return comm::testing::as_threads(ranks, [&](int rank) {
    ConnectOptions options = test_options(rank, ranks, job);
    options.algorithm = given.algorithm;
    options.threads = given.threads;
    options.max_error = given.max_error;
    if (*std::max_element(hosts.begin(), hosts.end()) > 0) {
      options.address = comm::testing::loopback_address(job);
      options.token = comm::testing::kToken;
      options.host = "host-" + std::to_string(hosts[static_cast<std::size_t>(rank)]);
    }
    Communicator communicator = Communicator::connect(options);
    return body(communicator);
  });
}

inline std::string bytes_of(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

inline void expect_same(const std::vector<std::string>& results, const std::string& what) {
  for (const std::string& result : results) {
    EXPECT_TRUE(result == results.front()) << what;
  }
}

// Returns the call's error, without the hint.
inline std::string refusal(Communicator& comm, const Call& call) {
  try {
    comm.run(call);
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "nothing was refused";
}

inline ConnectOptions that_ask(double max_error, const char* algorithm = "") {
  ConnectOptions options;
  options.max_error = max_error;
  options.algorithm = algorithm;
  return options;
}

}  // namespace unisono::testing
