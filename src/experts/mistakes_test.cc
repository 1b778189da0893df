// What one rank does wrong is told to all with one sentence, and everything works on after it.
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
  Exchange exchange;
  Routing routing;
};

TEST(ExpertMistakes, ExpertThatDoesNotExist) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<std::int32_t> wrong = {0, comm.rank() == 1 ? 4 : 1};
    expect_error(ErrorCode::usage,
                 "route() of rank 1: token 0 chose expert 4 at place 1, and there are 4",
                 [&] { (void)small.exchange.route(std::span(wrong)); });
    const std::vector<std::int64_t> odd(comm.rank() == 0 ? 3 : 2, 0);
    expect_error(ErrorCode::usage, "route() of rank 0: k = 2 does not divide its 3 choices",
                 [&] { (void)small.exchange.route(std::span(odd)); });
    small.round_trip();
  });
}

TEST(ExpertMistakes, OptionsThatDiffer) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    const auto differ = [&](const std::string& text, const ExchangeOptions& first,
                            const ExchangeOptions& other) {
      expect_error(ErrorCode::mismatch, text,
                   [&] { const Exchange exchange(comm, comm.rank() == 0 ? first : other); });
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
      const Exchange exchange(comm, {.experts = 3, .experts_of_rank = {{0, 1}, {1}}});
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

TEST(ExpertMistakes, HalvesThatDoNotMeet) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    expect_error(ErrorCode::usage, "finish_dispatch() without start_dispatch()",
                 [&] { small.exchange.finish_dispatch(); });
    std::vector<float> rows(small.routing.rows());
    small.exchange.start_dispatch(small.routing, {{.in = std::as_bytes(std::span(small.tokens)),
                                                   .out = std::as_writable_bytes(std::span(rows)),
                                                   .row_bytes = sizeof(float)}});
    expect_error(ErrorCode::usage, "finish_combine() without start_combine()",
                 [&] { small.exchange.finish_combine(); });
    expect_error(ErrorCode::usage,
                 "route() of rank 0: dispatch() has been started, and not finished",
                 [&] { (void)small.route(); });
    small.exchange.finish_dispatch();
    small.round_trip();
  });
}

TEST(ExpertMistakes, RowsThatChangeBetweenTheHalves) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    std::vector<float> rows(small.routing.rows(), 7.0F);
    const std::vector<float> before = rows;
    small.exchange.start_dispatch(small.routing, {{.in = std::as_bytes(std::span(small.tokens)),
                                                   .out = std::as_writable_bytes(std::span(rows)),
                                                   .row_bytes = sizeof(float)}});
    small.tokens[1] += comm.rank() == 1 ? 1.0F : 0.0F;
    expect_error(ErrorCode::usage, "dispatch() of rank 1: its rows changed between the halves",
                 [&] { small.exchange.finish_dispatch(); });
    EXPECT_EQ(rows, before);
    small.tokens[1] -= comm.rank() == 1 ? 1.0F : 0.0F;
    std::vector<float> out(small.tokens.size(), 7.0F);
    small.exchange.start_combine(small.routing, {.rows = std::as_bytes(std::span(rows)),
                                                 .out = std::as_writable_bytes(std::span(out)),
                                                 .dtype = Dtype::f32,
                                                 .hidden = 1});
    rows.back() += comm.rank() == 0 ? 1.0F : 0.0F;
    expect_error(ErrorCode::usage, "combine() of rank 0: its rows changed between the halves",
                 [&] { small.exchange.finish_combine(); });
    EXPECT_EQ(out, (std::vector<float>{7.0F, 7.0F}));
    small.round_trip();
  });
}

TEST(ExpertMistakes, MistakesOfStartsAreToldByFinishesOnOneHost) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<std::byte> in(comm.rank() == 1 ? 12 : 8);
    std::vector<std::byte> out(small.routing.rows() * 4);
    expect_error(ErrorCode::usage, "dispatch() of rank 1: `in` has 12 bytes, not the 8", [&] {
      small.exchange.start_dispatch(small.routing, {{.in = in, .out = out, .row_bytes = 4}});
      if (comm.hosts() > 1) {
        ADD_FAILURE() << "between hosts the start tells it";
      }
      small.exchange.finish_dispatch();
    });
    small.round_trip();
  });
}

TEST(ExpertMistakes, RowsThatCannotBeCoded) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Small small(comm);
    const std::vector<std::byte> in(8);
    std::vector<std::byte> out(small.routing.rows() * 4);
    expect_error(ErrorCode::usage, "rows of i32 cannot travel coded", [&] {
      small.exchange.dispatch(
          small.routing,
          {{.in = in, .out = out, .row_bytes = 4, .coding = RowCoding::i8, .dtype = Dtype::i32}});
    });
    for (const RowCoding other : {RowCoding::none, RowCoding::f8e4m3}) {
      const RowCoding coding = comm.rank() == 0 ? RowCoding::i8 : other;
      expect_error(ErrorCode::mismatch, "coding", [&] {
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

}  // namespace
}  // namespace unisono
