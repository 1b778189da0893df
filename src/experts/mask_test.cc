// Tests that replicas serve instead of excluded ranks, drained or dead.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/testing.h"
#include "comm/testing_ranks.h"
#include "unisono/parallel/experts.hpp"

namespace unisono {
namespace {

// Returns options with experts 0 to 3, of which all except 3 have a replica.
ExpertExchangeOptions with_replicas() {
  return {.experts = 4, .k = 2, .experts_of_rank = {{0, 1}, {1, 2, 3}, {2, 0}}};
}

// Sends one token per rank; experts return it unchanged, so the sum is twice the token.
std::string round_trip(ExpertExchange& exchange, const Routing& routing, float token) {
  std::vector<float> in = {token};
  std::vector<float> rows(routing.rows());
  std::vector<float> out = {-1.0F};
  exchange.dispatch(routing, {{.in = std::as_bytes(std::span(in)),
                               .out = std::as_writable_bytes(std::span(rows)),
                               .row_bytes = sizeof(float)}});
  exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                             .out = std::as_writable_bytes(std::span(out)),
                             .dtype = Dtype::f32,
                             .hidden = 1});
  return out[0] == 2 * token ? "" : "the sum is " + std::to_string(out[0]);
}

TEST(Mask, RanksThatAreOutGetNothing) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    ExpertExchange exchange(comm, with_replicas());
    const std::vector<std::int32_t> chosen = {0, 2};
    const auto route = [&] { return exchange.route(std::span(chosen)); };
    const Routing before = route();
    // Only rank 1 names rank 0; all ranks use the union.
    const std::vector<int> mine = comm.rank() == 1 ? std::vector<int>{0} : std::vector<int>{};
    EXPECT_EQ(exchange.mask(mine), std::vector<int>{0});
    const Routing masked = route();
    EXPECT_EQ(masked.rows_of_ranks()[0], 0);
    EXPECT_EQ(round_trip(exchange, masked, 3.0F), "");
    EXPECT_EQ(round_trip(exchange, before, 5.0F), "");
    EXPECT_TRUE(exchange.mask({}).empty());
    const Routing readmitted = route();
    EXPECT_EQ(readmitted.rows_of_ranks()[0], before.rows_of_ranks()[0]);
    EXPECT_EQ(round_trip(exchange, readmitted, 7.0F), "");
  });
}

TEST(Mask, RanksComeInAgainAtTheStatedRouting) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    ExpertExchange exchange(comm, with_replicas());
    const std::vector<std::int32_t> chosen = {0, 2};
    // Rank 0 is excluded for two routings, because the greatest number of any rank counts.
    const int routes = comm.rank() == 1 ? 2 : 1;
    EXPECT_EQ(exchange.mask(std::vector<int>{0}, routes), std::vector<int>{0});
    for (int route = 0; route < 4; ++route) {
      EXPECT_EQ(exchange.masked(), route < 2 ? std::vector<int>{0} : std::vector<int>{});
      if (route == 1) {  // a failed routing does not count
        const std::vector<std::int32_t> wrong = {9, 9};
        EXPECT_THROW((void)exchange.route(std::span(wrong)), Error);
      }
      const Routing routing = exchange.route(std::span(chosen));
      EXPECT_EQ(routing.rows_of_ranks()[0], route < 2 ? 0 : 2) << route;
      EXPECT_EQ(round_trip(exchange, routing, 3.0F), "");
    }
    // A new mask replaces a mask that has not ended.
    exchange.mask(std::vector<int>{0}, 1);
    exchange.mask(std::vector<int>{2});
    for (int route = 0; route < 3; ++route) {
      EXPECT_EQ(exchange.masked(), std::vector<int>{2});
      EXPECT_EQ(exchange.route(std::span(chosen)).rows_of_ranks()[2], 0);
    }
    EXPECT_THROW(exchange.mask(std::vector<int>{0}, 0), Error);
    EXPECT_EQ(exchange.masked(), std::vector<int>{2});
  });
}

TEST(Mask, LastReplicasCannotBeTaken) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    ExpertExchange exchange(comm, with_replicas());
    const std::vector<std::int32_t> chosen = {0, 2};
    const auto refused = [&](const std::vector<int>& ranks) -> std::string {
      try {
        exchange.mask(ranks);
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing";
    };
    exchange.mask(std::vector<int>{2});
    EXPECT_NE(refused({1, 2}).find("ranks 1, 2 out leaves no rank for experts 2, 3"),
              std::string::npos);
    EXPECT_NE(refused({3}).find("mask() of rank 0: it names rank 3, but there are 3"),
              std::string::npos);
    const Routing routing = exchange.route(std::span(chosen));
    EXPECT_EQ(routing.rows_of_ranks()[2], 0);  // the old routing keeps its mask
    EXPECT_EQ(round_trip(exchange, routing, 2.0F), "");
  });
}

std::string go_on_without_rank_2(Communicator& comm) {
  const std::vector<std::int32_t> chosen = {0, 2};
  Communicator left = comm.shrink();
  ExpertExchange exchange(left, after_shrink(with_replicas(), left, 3));
  return round_trip(exchange, exchange.route(std::span(chosen)), 4.0F);
}

TEST(Mask, DeadBetweenDispatchAndCombine) {
  const std::string job = comm::testing::unique_name("experts-kill");
  const auto said = comm::testing::as_processes(3, [&](int rank) -> std::string {
    ConnectOptions options = comm::testing::options_for(rank, 3, job);
    options.timeout_ms = 60'000;
    Communicator comm = Communicator::connect(options);
    const std::vector<std::int32_t> chosen = {0, 2};
    try {
      ExpertExchange exchange(comm, with_replicas());
      const Routing routing = exchange.route(std::span(chosen));
      std::vector<float> in = {1.0F};
      std::vector<float> rows(routing.rows());
      exchange.dispatch(routing, {{.in = std::as_bytes(std::span(in)),
                                   .out = std::as_writable_bytes(std::span(rows)),
                                   .row_bytes = sizeof(float)}});
      if (rank == 2) {
        ::raise(SIGKILL);
      }
      exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                                 .out = std::as_writable_bytes(std::span(in)),
                                 .dtype = Dtype::f32,
                                 .hidden = 1});
      return "combined without rank 2";
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost || error.context().peer != 2) {
        return error.what();
      }
    }
    return go_on_without_rank_2(comm);
  });
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[1], "");
}

// Rank 2 is killed at some point of a run that makes all forms of the calls.
std::string run_until_killed(int rank, const std::string& job, int delay_us) {
  Communicator comm = Communicator::connect(comm::testing::options_for(rank, 3, job));
  const std::vector<std::int32_t> chosen = {0, 2};
  try {
    ExpertExchange exchange(comm, with_replicas());
    const std::jthread killer([rank, delay_us] {
      if (rank == 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
        ::raise(SIGKILL);
      }
    });
    for (;;) {
      const Routing routing = exchange.route(std::span(chosen));
      std::vector<float> in = {1.0F};
      std::vector<float> rows(routing.rows());
      const Payload payload{.in = std::as_bytes(std::span(in)),
                            .out = std::as_writable_bytes(std::span(rows)),
                            .row_bytes = sizeof(float)};
      exchange.dispatch(routing, {payload});
      exchange.dispatch_async(routing, {payload}).wait();
      if (const std::string wrong = round_trip(exchange, routing, 3.0F); !wrong.empty()) {
        return wrong;
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::peer_lost || error.context().peer != 2) {
      return error.what();
    }
  }
  return go_on_without_rank_2(comm);
}

TEST(Mask, KilledAtAnyMoment) {
  for (int round = 0; round < 20; ++round) {
    const std::string job = comm::testing::unique_name("experts-any");
    const auto said = comm::testing::as_processes(
        3, [&](int rank) { return run_until_killed(rank, job, 173 * round); });
    EXPECT_EQ(said[0], "") << round;
    EXPECT_EQ(said[1], "") << round;
  }
}

TEST(Mask, WithoutReplicasTheLostExpertsAreNamed) {
  const std::string job = comm::testing::unique_name("experts-lost");
  const auto said = comm::testing::as_processes(2, [&](int rank) -> std::string {
    Communicator comm = Communicator::connect(comm::testing::options_for(rank, 2, job));
    const ExpertExchangeOptions even{.experts = 5, .k = 1};
    try {
      comm.barrier();  // all ranks are connected
      if (rank == 1) {
        ::raise(SIGKILL);
      }
      comm.barrier();
    } catch (const Error&) {
      Communicator left = comm.shrink({.quorum = false});
      try {
        after_shrink(even, left, 2);
      } catch (const Error& error) {
        return error.what();
      }
    }
    return "nothing";
  });
  EXPECT_NE(said[0].find("all ranks of experts 3, 4 are lost"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace unisono
