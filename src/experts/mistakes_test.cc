// Wrong arguments on one rank: the same sentence on all ranks, and the next exchange works.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "unisono/parallel/experts.hpp"

namespace unisono::parallel {
namespace {

constexpr int kRanks = 3;
const std::vector<std::int32_t> kChoices = {0, 1, 2, 0};  // two tokens

struct Fixture {
  Communicator& communicator;
  bool wrong;  // on this rank
  Exchange& exchange;
  Routing& routing;
  std::vector<float> rows = std::vector<float>(64);
  std::vector<float> tokens = std::vector<float>(64);
};

void expect_error(const std::string& wanted, const std::function<void(Fixture&)>& mistake,
                  ExpertLayout layout = ExpertLayout::expert_major) {
  run_threads(kRanks, [&](Communicator& communicator) {
    Exchange exchange(communicator, {.experts = 3, .k = 2, .layout = layout});
    Routing routing = exchange.route(std::span(kChoices));
    Fixture fixture{.communicator = communicator,
                    .wrong = communicator.rank() == 1,
                    .exchange = exchange,
                    .routing = routing};
    try {
      mistake(fixture);
      ADD_FAILURE() << "no error on rank " << communicator.rank();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_EQ(std::string(error.what()).substr(0, wanted.size()), wanted);
    }
    const Payload payload{
        .in = fixture.tokens.data(), .out = fixture.rows.data(), .row_bytes = sizeof(float)};
    exchange.dispatch(routing, std::span(&payload, 1));
  });
}

void make(Fixture& fixture, const ExchangeOptions& wrong) {
  const ExchangeOptions right{.experts = 3, .k = 2};
  const Exchange made(fixture.communicator, fixture.wrong ? wrong : right);
}

TEST(ExpertMistakes, Options) {
  const std::string call = "usage: exchange of experts: ";
  expect_error(call + "on rank 1 0 experts were given",
               [](Fixture& fixture) { make(fixture, {.experts = 0, .k = 2}); });
  expect_error(call + "on rank 1 k is 0", [](Fixture& fixture) { make(fixture, {.experts = 3}); });
  expect_error(call + "rank 1 has other options than rank 0",
               [](Fixture& fixture) { make(fixture, {.experts = 3, .k = 1}); });
  expect_error(call + "on rank 1 the place of expert 2 is no rank", [](Fixture& fixture) {
    make(fixture, {.experts = 3, .k = 2, .places = {0, 1, 3}});
  });
  expect_error(call + "on rank 1 the place of expert 2 is no rank",
               [](Fixture& fixture) { make(fixture, {.experts = 3, .k = 2, .places = {0, 1}}); });
  expect_error(call + "on rank 1 the alignment or capacity 0",
               [](Fixture& fixture) { make(fixture, {.experts = 3, .k = 2, .alignment = 0}); });
}

TEST(ExpertMistakes, Choices) {
  const auto route = [](Fixture& fixture, std::vector<std::int64_t> wrong) {
    const std::vector<std::int64_t> right = {0, 1};
    (void)fixture.exchange.route(std::span<const std::int64_t>(fixture.wrong ? wrong : right));
  };
  expect_error("usage: route: on rank 1 choice 1 names an expert that does not exist",
               [&](Fixture& fixture) { route(fixture, {0, std::int64_t{1} << 32}); });
  expect_error("usage: route: on rank 1 choice 0 names an expert that does not exist",
               [&](Fixture& fixture) { route(fixture, {-2, 0}); });
  expect_error("usage: route: on rank 1 3 choices are no multiple of k",
               [&](Fixture& fixture) { route(fixture, {0, 1, 2}); });
}

TEST(ExpertMistakes, Dispatch) {
  const auto dispatch = [](Fixture& fixture, Payload wrong) {
    const Payload right{.in = fixture.tokens.data(), .out = fixture.rows.data(), .row_bytes = 4};
    fixture.exchange.dispatch(fixture.routing, std::span(fixture.wrong ? &wrong : &right, 1));
  };
  expect_error("usage: dispatch: rank 1 has another routing or other row sizes than rank 0",
               [&](Fixture& fixture) {
                 dispatch(fixture, {fixture.tokens.data(), fixture.rows.data(), 8});
               });
  expect_error("usage: dispatch: on rank 1 buffer 0 is null",
               [&](Fixture& fixture) { dispatch(fixture, {nullptr, fixture.rows.data(), 4}); });
  expect_error("usage: dispatch: on rank 1 input and output of payload 0 overlap",
               [&](Fixture& fixture) {
                 dispatch(fixture, {fixture.rows.data(), fixture.rows.data() + 1, 4});
               });
  expect_error("usage: dispatch: on rank 0 the routing was made by another exchange",
               [](Fixture& fixture) {
                 Exchange other(fixture.communicator, {.experts = 3, .k = 2});
                 other.dispatch(fixture.routing, {});
               });
}

void combine(Fixture& fixture, const std::function<void(Combine&)>& spoil) {
  Combine arguments{
      .in = fixture.rows.data(), .out = fixture.tokens.data(), .hidden = 2, .dtype = Dtype::f32};
  if (fixture.wrong) {
    spoil(arguments);
  }
  fixture.exchange.combine(fixture.routing, arguments);
}

TEST(ExpertMistakes, Combine) {
  const std::vector<float> nan = {1.0F, 1.0F, std::nanf(""), 1.0F};
  const std::string rank = "usage: combine: on rank 1 ";
  expect_error(rank + "weight 2 is not a number", [&](Fixture& fixture) {
    combine(fixture, [&](Combine& arguments) { arguments.weights = nan; });
  });
  expect_error(rank + "3 weights were given", [&](Fixture& fixture) {
    combine(fixture, [&](Combine& arguments) { arguments.weights = std::span(nan).first(3); });
  });
  expect_error(rank + "the dtype cannot be summed", [&](Fixture& fixture) {
    combine(fixture, [](Combine& arguments) { arguments.dtype = Dtype::i32; });
  });
  expect_error("usage: combine: rank 1 has another routing, hidden size or dtype than rank 0",
               [&](Fixture& fixture) {
                 combine(fixture, [](Combine& arguments) { arguments.hidden = 1; });
               });
  expect_error(
      rank + "weights were given for rank_major rows",
      [&](Fixture& fixture) {
        combine(fixture, [&](Combine& arguments) { arguments.weights = nan; });
      },
      ExpertLayout::rank_major);
}

}  // namespace
}  // namespace unisono::parallel
