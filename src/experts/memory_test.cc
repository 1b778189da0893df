// Tests max_tokens: its bounds, the memory it reserves, and its growth.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/parallel/experts.hpp"

namespace unisono {
namespace {

// Returns choices that send all tokens to experts 0 and 1.
std::vector<std::int32_t> to_two(std::size_t tokens) {
  std::vector<std::int32_t> chosen;
  for (std::size_t token = 0; token < tokens; ++token) {
    chosen.insert(chosen.end(), {0, 1});
  }
  return chosen;
}

TEST(ExpertMemory, TheMostRowsAreThoseOfTheWorstRouting) {
  struct Case {
    ExpertLayout layout;
    int alignment;
    std::int64_t capacity;
    std::size_t most;
  };
  // Two ranks have 5 tokens each, and each token chooses 2 experts. Rank 0 may hold all chosen
  // experts: 20 rows.
  for (const Case& one :
       {Case{ExpertLayout::expert_major, 1, -1, 20}, Case{ExpertLayout::expert_major, 4, -1, 26},
        Case{ExpertLayout::expert_major, 1, 3, 6}, Case{ExpertLayout::rank_major, 1, -1, 10},
        Case{ExpertLayout::flat, 1, -1, 20}}) {
    run_threads(2, [&](Communicator& comm) {
      ExpertExchange exchange(comm, {.experts = 4,
                                     .k = 2,
                                     .layout = one.layout,
                                     .alignment = one.alignment,
                                     .capacity = one.capacity,
                                     .max_tokens = 5});
      EXPECT_EQ(exchange.max_tokens(), 5U);
      EXPECT_EQ(exchange.max_rows(), one.most);
      const auto chosen = to_two(5);
      const Routing routing = exchange.route(std::span(chosen));
      EXPECT_LE(routing.rows(), one.most);
      EXPECT_EQ(exchange.max_rows(), one.most);
    });
  }
}

// Buffers of one length serve every routing; the memory after the rows is unchanged.
TEST(ExpertMemory, BuffersOfTheMostRowsServeEveryRouting) {
  run_threads(2, [](Communicator& comm) {
    ExpertExchange exchange(comm,
                            {.experts = 4, .k = 2, .max_tokens = 4, .row_bytes = sizeof(float)});
    std::vector<float> rows(exchange.max_rows());
    std::vector<float> gradients(exchange.max_rows());
    for (std::size_t tokens = 0; tokens <= 4; ++tokens) {
      const auto chosen = to_two(comm.rank() == 0 ? tokens : 1);
      const Routing routing = exchange.route(std::span(chosen));
      const std::vector<float> in(routing.tokens(), 3.0F);
      std::vector<float> out(routing.tokens());
      const std::vector<float> weights(2 * out.size(), 2.0F);
      std::vector<float> weights_gradient(weights.size());
      rows.assign(rows.size(), -7.0F);
      exchange.dispatch(routing, {{.in = std::as_bytes(std::span(in)),
                                   .out = std::as_writable_bytes(std::span(rows)),
                                   .row_bytes = sizeof(float)}});
      for (std::size_t row = 0; row < rows.size(); ++row) {
        EXPECT_EQ(rows[row], row < routing.rows() ? 3.0F : -7.0F) << tokens << " tokens, " << row;
      }
      exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                                 .out = std::as_writable_bytes(std::span(out)),
                                 .dtype = Dtype::f32,
                                 .hidden = 1});
      EXPECT_EQ(out, std::vector<float>(out.size(), 6.0F));
      exchange
          .combine_async(routing, {.rows = std::as_bytes(std::span(rows)),
                                   .out = std::as_writable_bytes(std::span(out)),
                                   .dtype = Dtype::f32,
                                   .hidden = 1,
                                   .weights = weights})
          .wait();
      EXPECT_EQ(out, std::vector<float>(out.size(), 12.0F));
      exchange.combine_backward(routing,
                                {.out_gradient = std::as_bytes(std::span(in)),
                                 .rows_gradient = std::as_writable_bytes(std::span(gradients)),
                                 .dtype = Dtype::f32,
                                 .hidden = 1,
                                 .weights = weights,
                                 .rows = std::as_bytes(std::span(rows)),
                                 .weights_gradient = weights_gradient});
      EXPECT_EQ(weights_gradient, std::vector<float>(weights.size(), 9.0F));
    }
  });
}

TEST(ExpertMemory, MoreTokensGrowItOnAllRanks) {
  run_threads(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2, .max_tokens = 2, .row_bytes = 64});
    const auto chosen = to_two(comm.rank() == 1 ? 9 : 1);
    const Routing routing = exchange.route(std::span(chosen));
    EXPECT_EQ(exchange.max_tokens(), 9U);
    EXPECT_EQ(exchange.max_rows(), 36U);
    EXPECT_EQ(routing.rows(), comm.rank() == 0 ? 20U : 0U);  // nothing is dropped
  });
}

// A buffer sized by an earlier max_rows() works too, after another rank has routed more tokens.
TEST(ExpertMemory, BuffersMayHaveMoreRowsThanARouting) {
  run_threads(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2, .max_tokens = 2});
    std::vector<float> rows(exchange.max_rows());
    const auto many = to_two(comm.rank() == 1 ? 9 : 1);
    (void)exchange.route(std::span(many));
    const auto one = to_two(1);
    const Routing routing = exchange.route(std::span(one));
    const std::vector<float> in(1, 3.0F);
    std::vector<float> out(1);
    const auto dispatch = [&](std::size_t bytes) {
      exchange.dispatch(routing, {{.in = std::as_bytes(std::span(in)),
                                   .out = std::as_writable_bytes(std::span(rows)).first(bytes),
                                   .row_bytes = sizeof(float)}});
    };
    ASSERT_GT(rows.size(), 4U);
    dispatch(rows.size() * sizeof(float));
    exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                               .out = std::as_writable_bytes(std::span(out)),
                               .dtype = Dtype::f32,
                               .hidden = 1});
    EXPECT_EQ(out, std::vector<float>(1, 6.0F));
    for (const std::size_t wrong : {12U, 18U}) {  // too few rows; not a whole number of rows
      try {
        dispatch(comm.rank() == 0 ? wrong : 16);
        ADD_FAILURE() << wrong << " bytes";
      } catch (const Error& error) {
        const std::string text = "rank 0: `out` has " + std::to_string(wrong) +
                                 " bytes, not the 16 of 4 rows of 4, nor those of more rows";
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      }
    }
  });
}

TEST(ExpertMemory, WhatCannotBeIsToldToAllRanks) {
  run_threads(2, [](Communicator& comm) {
    const auto refused = [&](const ExpertExchangeOptions& options) -> std::string {
      try {
        const ExpertExchange exchange(comm, options);
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing";
    };
    EXPECT_NE(refused({.experts = 4, .k = 2, .max_tokens = std::size_t{1} << 31})
                  .find("max_tokens is 2147483648, but a rank can make at most 4294967295 choices"),
              std::string::npos);
    const auto mine = static_cast<std::size_t>(comm.rank());
    EXPECT_NE(refused({.experts = 4, .k = 2, .max_tokens = mine}).find("rank 0 has max_tokens = "),
              std::string::npos);
    EXPECT_NE(refused({.experts = 4,
                       .k = 2,
                       .max_tokens = std::size_t{1} << 30,
                       .row_bytes = std::size_t{1} << 20})
                  .find("experts: ExpertExchange() of rank 0: "),
              std::string::npos);
    EXPECT_NE(refused({.experts = 8,  // 2^64 bytes, which wraps to zero
                       .k = 8,
                       .max_tokens = std::size_t{1} << 28,
                       .row_bytes = std::size_t{1} << 33})
                  .find("it has no memory for the rows of 268435456 tokens"),
              std::string::npos);
    EXPECT_EQ(refused({.experts = 4, .k = 2, .max_tokens = 1}), "nothing");
  });
}

}  // namespace
}  // namespace unisono
