// Tests that a hundred runs give the same bits, for any timing and any transport.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/parallel/experts.hpp"

namespace unisono {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kTokens = 7;
constexpr std::size_t kHidden = 130;
constexpr int kChoices = 4;

// Computes sums whose bits depend on the order of addition. Each rank has a different delay in each
// run.
std::vector<float> run_once(Communicator& comm, ExpertExchange& exchange, RowCoding coding,
                            int run) {
  std::mt19937 random(static_cast<unsigned>(comm.rank()) + 1);
  std::vector<std::int32_t> chosen;
  for (std::size_t token = 0; token < kTokens; ++token) {
    const int first = static_cast<int>(random() % 9);
    for (int slot = 0; slot < kChoices; ++slot) {
      chosen.push_back((first + 2 * slot) % 9);
    }
  }
  std::normal_distribution<float> normal;
  std::vector<float> tokens(kTokens * kHidden);
  std::vector<float> weights(kTokens * kChoices);
  for (std::vector<float>* values : {&tokens, &weights}) {
    for (float& value : *values) {
      value = normal(random);
    }
  }
  const int late = (run * 7 + comm.rank() * 13) % 5;
  std::this_thread::sleep_for(std::chrono::microseconds(40 * late));
  const Routing routing = exchange.route(std::span<const std::int32_t>(chosen));
  std::vector<float> rows(routing.rows() * kHidden);
  std::vector<float> out(tokens.size());
  exchange.dispatch(routing, {{.in = std::as_bytes(std::span(tokens)),
                               .out = std::as_writable_bytes(std::span(rows)),
                               .row_bytes = kHidden * sizeof(float),
                               .coding = coding,
                               .dtype = Dtype::f32}});
  exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                             .out = std::as_writable_bytes(std::span(out)),
                             .dtype = Dtype::f32,
                             .hidden = kHidden,
                             .weights = weights,
                             .coding = coding});
  return out;
}

// Result of every run, by rank and coding.
using Results = std::vector<std::vector<std::vector<float>>>;

// Ranks from `others` on count as being on another host.
Results run_often(ConnectOptions options, int others = kRanks) {
  Results results(kRanks, std::vector<std::vector<float>>(3));
  options.job = comm::testing::unique_name("experts-bits");
  options.token = "experts-the-same-bits";
  options.address = comm::testing::loopback_address(options.job);
  comm::testing::as_threads(kRanks, [&](int rank) {
    ConnectOptions mine = options;
    mine.rank = rank;
    mine.size = kRanks;
    mine.host = rank < others ? "a" : "b";
    Communicator comm = Communicator::connect(mine);
    ExpertExchange exchange(comm, {.experts = 9, .k = kChoices});
    for (const RowCoding coding : {RowCoding::none, RowCoding::i8, RowCoding::f8e4m3}) {
      auto& first = results[static_cast<std::size_t>(rank)][static_cast<std::size_t>(coding)];
      first = run_once(comm, exchange, coding, 0);
      for (int run = 1; run < 100; ++run) {
        EXPECT_EQ(run_once(comm, exchange, coding, run), first) << "run " << run;
      }
    }
    return std::string();
  });
  return results;
}

TEST(ExpertDeterminism, BitsAreTheSameInEveryRunAndOverEachTransport) {
  const Results shared = run_often({});
  ConnectOptions options;
  options.transport = TransportKind::tcp;
  EXPECT_EQ(run_often(options), shared);
  EXPECT_EQ(run_often({}, 2), shared);    // two ranks on one host, one on the other
  EXPECT_NE(shared[0][0], shared[0][1]);  // i8 differs from f32
  EXPECT_NE(shared[0][1], shared[0][2]);
}

// A token's choices are added in order, wherever its experts are.
TEST(ExpertDeterminism, CombineHasTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::size_t kAll = 12;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> tokens(kAll * kHidden);
  std::vector<float> weights(kAll * kChoices);
  std::vector<std::int32_t> chosen;
  for (std::vector<float>* values : {&tokens, &weights}) {
    std::ranges::generate(*values, [&] { return normal(random); });
  }
  for (std::size_t token = 0; token < kAll; ++token) {
    for (int slot = 0; slot < kChoices; ++slot) {
      chosen.push_back(
          static_cast<std::int32_t>((token * 5 + 7 * static_cast<unsigned>(slot)) % 12));
    }
  }
  std::vector<float> alone;
  for (const int ranks : {1, 2, 3, 4, 6}) {
    const std::string job = comm::testing::unique_name("experts-ranks");
    comm::testing::as_threads(ranks, [&](int rank) {
      Communicator comm = Communicator::connect(comm::testing::options_for(rank, ranks, job));
      ExpertExchange exchange(comm, {.experts = 12, .k = kChoices});
      const std::size_t count = kAll / static_cast<std::size_t>(ranks);
      const std::size_t first = count * static_cast<std::size_t>(rank);
      const auto mine = [&](auto& all, std::size_t width) {
        return std::span(all).subspan(first * width, count * width);
      };
      const Routing routing = exchange.route(std::span<const std::int32_t>(mine(chosen, kChoices)));
      std::vector<float> rows(routing.rows() * kHidden);
      exchange.dispatch(routing, {{.in = std::as_bytes(mine(tokens, kHidden)),
                                   .out = std::as_writable_bytes(std::span(rows)),
                                   .row_bytes = kHidden * sizeof(float)}});
      std::vector<float> out(count * kHidden);
      exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                                 .out = std::as_writable_bytes(std::span(out)),
                                 .dtype = Dtype::f32,
                                 .hidden = kHidden,
                                 .weights = mine(weights, kChoices)});
      if (alone.empty()) {
        alone = out;
      }
      EXPECT_TRUE(std::ranges::equal(out, mine(alone, kHidden))) << ranks << " ranks";
      return std::string();
    });
  }
}

}  // namespace
}  // namespace unisono
