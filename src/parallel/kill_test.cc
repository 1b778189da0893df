// A rank that is killed while gradients are under way: the others are told who, and do not hang.
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/sharded_state.hpp"

namespace unisono::parallel {
namespace {

constexpr int kRanks = 3;
constexpr int kVictim = 1;

// What the survivors say.
template <typename Body>
void expect_told(const Body& body) {
  const std::string job = comm::testing::unique_name("parallel-kill");
  const auto said = comm::testing::as_processes(kRanks, [&](int rank) -> std::string {
    ConnectOptions options = comm::testing::options_for(rank, kRanks, job);
    options.timeout_ms = 60'000;
    Communicator comm = Communicator::connect(options);
    try {
      body(comm);
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + " " + std::to_string(error.context().peer);
    }
    return "nothing";
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(said[static_cast<std::size_t>(rank)], "peer_lost 1") << "rank " << rank;
  }
}

TEST(Kill, WhileBucketsAreUnderWay) {
  expect_told([](Communicator& comm) {
    GradientBuckets buckets(comm, {.first_bytes = 1 << 16, .bytes = 1 << 18});
    for (int i = 0; i < 8; ++i) {
      buckets.add("layer " + std::to_string(i), std::size_t{1} << 16);
    }
    for (int step = 0; step < 20; ++step) {
      buckets.begin();
      for (std::size_t i = 0; i < 8; ++i) {
        if (comm.rank() == kVictim && step == 2 && i == 5) {
          ::raise(SIGKILL);
        }
        buckets.ready(i);
      }
      buckets.finish();
    }
  });
}

TEST(Kill, WhileParametersAreGathered) {
  expect_told([](Communicator& comm) {
    ShardedState state(comm, {{{.name = "w", .count = 1 << 20}}, {{.name = "v", .count = 1 << 20}}},
                       {.stage = 3});
    for (int step = 0; step < 20; ++step) {
      state.prefetch(0);
      state.prefetch(1);
      if (comm.rank() == kVictim && step == 1) {
        ::raise(SIGKILL);
      }
      for (const std::size_t unit : {0U, 1U}) {
        state.parameters(unit);
        state.release(unit);
        state.gradients_ready(unit);
      }
      state.step();
    }
  });
}

}  // namespace
}  // namespace unisono::parallel
