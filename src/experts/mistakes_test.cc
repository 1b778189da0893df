// Tests that a mistake of one rank gives all ranks the same error, and that later calls work.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "comm/testing_ranks.h"
#include "unisono/parallel/experts.hpp"

namespace unisono {
namespace {

template <typename Call>
void expect_error(ErrorCode code, const std::string& text, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

struct Small {
  explicit Small(Communicator& communicator)
      : comm(communicator), exchange(comm, {.experts = 4, .k = 2}), routing(route()) {}
  Routing route() { return exchange.route(std::span<const std::int32_t>(chosen)); }
  void round_trip() {
    std::vector<float> rows(routing.rows());
    std::vector<float> out(tokens.size());
    exchange.dispatch(routing, {{.in = std::as_bytes(std::span(tokens)),
                                 .out = std::as_writable_bytes(std::span(rows)),
                                 .row_bytes = sizeof(float)}});
    combine(rows, out, weights);
    EXPECT_EQ(out, (std::vector<float>{2.0F, 4.0F}));
  }
  void combine(std::span<const float> rows, std::span<float> out, std::span<const float> by) {
    exchange.combine(routing, {.rows = std::as_bytes(rows),
                               .out = std::as_writable_bytes(out),
                               .dtype = Dtype::f32,
                               .hidden = 1,
                               .weights = by});
  }
  Communicator& comm;
  std::vector<std::int32_t> chosen = {0, 3, 1, 2};
  std::vector<float> tokens = {1.0F, 2.0F};
  std::vector<float> weights = {1.0F, 1.0F, 1.0F, 1.0F};
  ExpertExchange exchange;
  Routing routing;
};

TEST(ExpertMistakes, ExpertThatDoesNotExist) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<std::int32_t> wrong = {0, comm.rank() == 1 ? 4 : 1};
    expect_error(ErrorCode::usage,
                 "route() of rank 1: token 0 chose expert 4 at place 1, but there are 4",
                 [&] { (void)small.exchange.route(std::span(wrong)); });
    const std::vector<std::int64_t> odd(comm.rank() == 0 ? 3 : 2, 0);
    expect_error(ErrorCode::usage, "route() of rank 0: k = 2 does not divide its 3 choices",
                 [&] { (void)small.exchange.route(std::span(odd)); });
    small.round_trip();
  });
}

TEST(ExpertMistakes, OptionsThatDiffer) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    const auto differ = [&](const std::string& text, const ExpertExchangeOptions& first,
                            const ExpertExchangeOptions& other) {
      expect_error(ErrorCode::mismatch, text,
                   [&] { const ExpertExchange exchange(comm, comm.rank() == 0 ? first : other); });
    };
    differ("rank 0 has k = 1, and rank 1 has k = 2\ngive the same", {.experts = 4, .k = 1},
           {.experts = 4, .k = 2});
    differ("rank 0 has layout = flat, and rank 1 has layout = rank_major",
           {.experts = 4, .layout = ExpertLayout::flat},
           {.experts = 4, .layout = ExpertLayout::rank_major, .capacity = 3});
    differ("rank 0 has row_bytes = 0, and rank 1 has row_bytes = 8", {.experts = 4},
           {.experts = 4, .row_bytes = 8});
    differ("rank 0 has experts_of_rank of length 2, and rank 1 has experts_of_rank of length 0",
           {.experts = 2, .experts_of_rank = {{0}, {1}}}, {.experts = 2});
    differ("has experts_of_rank[1] of length 1, and rank 1 has experts_of_rank[1] of length 2",
           {.experts = 2, .experts_of_rank = {{0}, {1}}},
           {.experts = 2, .experts_of_rank = {{0}, {1, 0}}});
    differ("rank 0 has experts_of_rank[1][0] = 1, and rank 1 has experts_of_rank[1][0] = 0",
           {.experts = 2, .experts_of_rank = {{0}, {1, 0}}},
           {.experts = 2, .experts_of_rank = {{0}, {0, 1}}});
    expect_error(ErrorCode::usage, "no rank holds expert 2", [&] {
      const ExpertExchange exchange(comm, {.experts = 3, .experts_of_rank = {{0, 1}, {1}}});
    });
    Small(comm).round_trip();
  });
}

TEST(ExpertMistakes, RowsThatDiffer) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::size_t bytes = comm.rank() == 0 ? 4 : 8;
    const std::vector<std::byte> in(2 * bytes);
    std::vector<std::byte> out(small.routing.rows() * bytes);
    expect_error(ErrorCode::mismatch, "rank 0 has rows of 4 bytes, and rank 1 has rows of 8", [&] {
      small.exchange.dispatch(small.routing, {{.in = in, .out = out, .row_bytes = bytes}});
    });
    const std::vector<std::byte> longer(3 * 4);
    std::vector<std::byte> rows(small.routing.rows() * 4);
    expect_error(ErrorCode::usage, "`in` has 12 bytes, not the 8 of 2 rows of 4", [&] {
      small.exchange.dispatch(small.routing, {{.in = longer, .out = rows, .row_bytes = 4}});
    });
    small.round_trip();
  });
}

TEST(ExpertMistakes, OutputsThatDiffer) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::size_t hidden = comm.rank() == 0 ? 1 : 2;
    const std::vector<float> rows(small.routing.rows() * hidden);
    std::vector<float> out(2 * hidden, 7.0F);
    expect_error(ErrorCode::mismatch, "rank 0 has rows of 4 bytes, and rank 1 has rows of 8", [&] {
      small.exchange.combine(small.routing, {.rows = std::as_bytes(std::span(rows)),
                                             .out = std::as_writable_bytes(std::span(out)),
                                             .dtype = Dtype::f32,
                                             .hidden = hidden,
                                             .weights = small.weights});
    });
    EXPECT_EQ(out, std::vector<float>(2 * hidden, 7.0F));
    small.round_trip();
  });
}

TEST(ExpertMistakes, CallsThatDiffer) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    std::vector<float> rows(small.routing.rows());
    std::vector<float> out = {7.0F, 7.0F};
    const Payload tokens = {.in = std::as_bytes(std::span(small.tokens)),
                            .out = std::as_writable_bytes(std::span(rows)),
                            .row_bytes = sizeof(float)};
    expect_error(ErrorCode::mismatch, "rank 0 calls dispatch(), and rank 1 calls combine()", [&] {
      if (comm.rank() == 0) {
        small.exchange.dispatch(small.routing, {tokens});
      } else {
        small.combine(rows, out, small.weights);
      }
    });
    EXPECT_EQ(out, (std::vector<float>{7.0F, 7.0F}));
    small.round_trip();
  });
}

TEST(ExpertMistakes, RoutingsOfOthers) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    Small other(comm);
    std::vector<float> rows(small.routing.rows());
    std::vector<float> out(2);
    expect_error(ErrorCode::usage, "the routing was made by another exchange", [&] {
      small.exchange.combine(other.routing, {.rows = std::as_bytes(std::span(rows)),
                                             .out = std::as_writable_bytes(std::span(out)),
                                             .dtype = Dtype::f32,
                                             .hidden = 1});
    });
    const Routing second = small.route();
    expect_error(ErrorCode::mismatch, "rank 0 uses routing 1, and rank 1 uses routing 2", [&] {
      small.exchange.combine(comm.rank() == 0 ? small.routing : second,
                             {.rows = std::as_bytes(std::span(rows)),
                              .out = std::as_writable_bytes(std::span(out)),
                              .dtype = Dtype::f32,
                              .hidden = 1});
    });
    small.round_trip();
  });
}

TEST(ExpertMistakes, RowsThatCannotBeCoded) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<std::byte> in(8);
    std::vector<std::byte> out(small.routing.rows() * 4);
    expect_error(ErrorCode::usage, "rows of i32 cannot be encoded", [&] {
      small.exchange.dispatch(
          small.routing,
          {{.in = in, .out = out, .row_bytes = 4, .coding = RowCoding::i8, .dtype = Dtype::i32}});
    });
    for (const RowCoding other : {RowCoding::none, RowCoding::f8e4m3}) {
      const RowCoding coding = comm.rank() == 0 ? RowCoding::i8 : other;
      expect_error(ErrorCode::mismatch, "rank 0 gives rows of f32, coded as i8, and rank 1", [&] {
        small.exchange.dispatch(
            small.routing,
            {{.in = in, .out = out, .row_bytes = 4, .coding = coding, .dtype = Dtype::f32}});
      });
    }
    small.round_trip();
  });
}

TEST(ExpertMistakes, WeightsThatAreNoNumbers) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<float> rows(small.routing.rows());
    std::vector<float> out = {7.0F, 7.0F};
    auto weights = small.weights;
    weights[2] = comm.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
    expect_error(ErrorCode::usage, "combine() of rank 1: the weight of token 1 at place 0 is nan",
                 [&] { small.combine(rows, out, weights); });
    EXPECT_EQ(out, (std::vector<float>{7.0F, 7.0F}));
    small.round_trip();
  });
}

Payload floats(std::span<const float> in, std::span<float> out) {
  return {.in = std::as_bytes(in),
          .out = std::as_writable_bytes(out),
          .row_bytes = sizeof(float),
          .dtype = Dtype::f32};
}

TEST(ExpertMistakes, RowsOfOtherKinds) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    std::vector<float> rows(small.routing.rows());
    Payload one = floats(comm.rank() == 0 ? small.tokens : small.weights, rows);
    one.one_a_slot = comm.rank() == 1;
    expect_error(ErrorCode::mismatch,
                 "rank 0 gives rows of f32, and rank 1 gives rows of f32, one per slot",
                 [&] { small.exchange.dispatch(small.routing, {one}); });
    std::vector<std::uint16_t> tokens(2);
    std::vector<std::uint16_t> halves(small.routing.rows());
    const Payload coded = {.in = std::as_bytes(std::span(tokens)),
                           .out = std::as_writable_bytes(std::span(halves)),
                           .row_bytes = 2,
                           .coding = RowCoding::i8,
                           .dtype = comm.rank() == 0 ? Dtype::f16 : Dtype::bf16};
    expect_error(
        ErrorCode::mismatch,
        "rank 0 gives rows of f16, coded as i8, and rank 1 gives rows of bf16, coded as i8",
        [&] { small.exchange.dispatch(small.routing, {coded}); });
    small.round_trip();
  });
}

TEST(ExpertMistakes, MemoryThatOverlaps) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    std::vector<float> rows(small.routing.rows() + 2);
    const std::span<float> all(rows);
    expect_error(ErrorCode::usage, "dispatch() of rank 0: `out` overlaps `in`", [&] {
      small.exchange.dispatch(small.routing, {floats(all.first(2), all.first(rows.size() - 2))});
    });
    expect_error(ErrorCode::usage, "`out` overlaps `rows`", [&] {
      small.combine(all.first(small.routing.rows()), all.first(2), small.weights);
    });
    std::vector<float> of_weights(4);
    const auto bytes = std::as_writable_bytes(all.first(small.routing.rows()));
    expect_error(ErrorCode::usage, "combine_backward() of rank 0: `rows_gradient` overlaps `rows`",
                 [&] {
                   small.exchange.combine_backward(
                       small.routing, {.out_gradient = std::as_bytes(std::span(small.tokens)),
                                       .rows_gradient = bytes,
                                       .dtype = Dtype::f32,
                                       .hidden = 1,
                                       .rows = bytes,
                                       .weights_gradient = of_weights});
                 });
    small.round_trip();
  });
}

TEST(ExpertMistakes, NumbersThatAreTooLarge) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    expect_error(ErrorCode::usage, "`rows` has 0 bytes, not the", [&] {
      small.exchange.combine(small.routing, {.dtype = Dtype::f32, .hidden = std::size_t{1} << 62});
    });
    const ExpertExchange most(comm, {.experts = 8,
                                     .k = 2,
                                     .capacity = std::numeric_limits<std::int64_t>::max(),
                                     .max_tokens = 4});
    EXPECT_EQ(most.max_rows(), 16U);
    expect_error(ErrorCode::usage, "capacity is -7, but must be -1 (no limit), 0 or more",
                 [&] { const ExpertExchange wrong(comm, {.experts = 8, .capacity = -7}); });
    small.round_trip();
  });
}

TEST(ExpertMistakes, RowsOfAnExpertInAnotherLayout) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    for (const ExpertLayout layout : {ExpertLayout::flat, ExpertLayout::rank_major}) {
      ExpertExchange exchange(comm, {.experts = 4, .k = 2, .layout = layout});
      const std::vector<std::int32_t> chosen = {0, 3};
      const Routing routing = exchange.route(std::span(chosen));
      expect_error(ErrorCode::usage, "only the layout expert_major",
                   [&] { (void)routing.first_row(0); });
      expect_error(ErrorCode::usage, "only the layout expert_major",
                   [&] { (void)routing.rows_of(0); });
    }
  });
}

}  // namespace
}  // namespace unisono
