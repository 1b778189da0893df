// Tests the rank and the expert that a routing reports as the cause of waiting.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "experts/load.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts {
namespace {

TEST(Load, NamesTheRankThatGetsMost) {
  PhysicalExperts physical_experts;
  physical_experts.experts_of_rank = {{0, 1}, {2, 3}};
  Places places;
  places.chosen = {10, 10, 10, 10};
  places.rows_of_ranks = {20, 20};
  EXPECT_EQ(describe_load(places, physical_experts), "");
  places.chosen = {10, 10, 20, 20};
  places.rows_of_ranks = {20, 40};
  EXPECT_EQ(describe_load(places, physical_experts), "") << "a third more than the mean";
  places.chosen = {10, 10, 20, 120};
  places.rows_of_ranks = {20, 140};
  EXPECT_EQ(describe_load(places, physical_experts),
            "rank 1 gets most rows, for expert 3 (over 2 times the mean)");
  places.chosen = {1, 1, 2, 12};
  places.rows_of_ranks = {2, 14};
  EXPECT_EQ(describe_load(places, physical_experts), "") << "few rows";
  places.chosen = {0, 0, 0, 0};
  places.rows_of_ranks = {0, 0};
  EXPECT_EQ(describe_load(places, physical_experts), "");
}

constexpr std::size_t kTokens = 16;

// Rank 1 joins after an observer has seen why rank 0 waits.
void dispatch_when_seen(Communicator& comm, ExpertExchange& exchange, const Routing& routing,
                        std::atomic<bool>& seen) {
  const std::vector<float> tokens(kTokens);
  std::vector<float> rows(routing.rows());
  const Payload payload{.in = std::as_bytes(std::span(tokens)),
                        .out = std::as_writable_bytes(std::span(rows)),
                        .row_bytes = sizeof(float)};
  if (comm.rank() == 1) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!seen && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    exchange.dispatch(routing, {payload});
    return;
  }
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      const std::string wanted =
          "layer 7: rank 1 gets most rows, for expert 3 (over 4 times the mean)";
      seen = seen || comm.label() == wanted;
    }
  });
  exchange.dispatch(routing, {payload});
  done = true;
  watcher.join();
}

TEST(Load, IsInTheLabelOfARankThatWaitsForRows) {
  std::atomic<bool> seen = false;
  run_threads(2, [&seen](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 1});
    const std::vector<std::int32_t> chosen(kTokens, 3);
    const Routing routing = exchange.route(std::span(chosen));
    comm.label("layer 7");
    dispatch_when_seen(comm, exchange, routing, seen);
    EXPECT_EQ(comm.label(), "layer 7");
  });
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace unisono::experts
