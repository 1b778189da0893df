// Compares dispatch and combine with one process that holds all tokens, for random shapes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "experts/testing_checks.h"

namespace unisono::experts::testing {
namespace {

class RandomShapes : public ::testing::TestWithParam<int> {};
TEST_P(RandomShapes, AreAsOneProcessHasThem) {
  run_threads(GetParam(), [](Communicator& comm) { check_random_shapes(comm, cases()); });
}
INSTANTIATE_TEST_SUITE_P(Ranks, RandomShapes, ::testing::Values(1, 2, 3, 4, 5));

TEST(Experts, RandomShapesBetweenProcesses) {
  const std::string job = comm::testing::unique_name("experts");
  for (const std::string& said : comm::testing::as_processes(3, [&](int rank) {
         Communicator comm = Communicator::connect(comm::testing::options_for(rank, 3, job));
         return check_random_shapes(comm, cases() / 10 + 1);
       })) {
    EXPECT_EQ(said, "");
  }
}

TEST(Experts, RandomShapesBetweenHosts) {
  const std::string job = comm::testing::unique_name("experts");
  ConnectOptions options;
  options.job = job;
  options.token = "experts-between-hosts";
  options.transport = TransportKind::tcp;
  options.address = comm::testing::loopback_address(job);
  run_threads(3, [](Communicator& comm) { check_random_shapes(comm, cases() / 10 + 1); }, options);
}

// The tokens exceed the caches, and each token goes to each rank twice, so rows are read in token
// order.
TEST(Experts, ManyTokens) {
  Shape shape{.options = {.experts = 4, .k = 4, .alignment = 8},
              .chosen = {{}, {}},
              .hidden = 2048,
              .registered = true};
  for (int choice = 0; choice < 4 * 300; ++choice) {
    shape.chosen[0].push_back(choice % 4);
    shape.chosen[1].push_back((choice + choice / 4) % 4);
  }
  run_threads(2, [&](Communicator& comm) { check_shape(comm, shape, "many tokens"); });
}

// Checks sums that every type represents exactly, with a residual.
template <typename Element>
void check_dtype(Communicator& comm, Dtype dtype) {
  constexpr std::size_t kHidden = 37;
  ExpertExchange exchange(comm, {.experts = 5, .k = 3});
  const std::vector<std::int32_t> chosen = {4, 0, 2, 1, -1, 3};
  const std::vector<float> weights = {1, 2, -1, 2, 1, 1};
  const Routing routing = exchange.route(std::span(chosen));
  std::vector<float> values;
  std::vector<float> expected;
  for (std::size_t i = 0; i < 2 * kHidden; ++i) {
    values.push_back(value_of(comm.rank(), i / kHidden, i % kHidden));
    expected.push_back((i < kHidden ? 3 : 4) * values.back());
  }
  const auto tokens = converted<Element>(values);
  const auto sums = converted<Element>(expected);
  std::vector<Element> rows(routing.rows() * kHidden);
  std::vector<Element> out(tokens.size());
  exchange.dispatch(routing, {{.in = std::as_bytes(std::span(tokens)),
                               .out = std::as_writable_bytes(std::span(rows)),
                               .row_bytes = kHidden * sizeof(Element)}});
  exchange.combine(routing, {.rows = std::as_bytes(std::span(rows)),
                             .out = std::as_writable_bytes(std::span(out)),
                             .dtype = dtype,
                             .hidden = kHidden,
                             .weights = weights,
                             .residual = std::as_bytes(std::span(tokens))});
  EXPECT_EQ(std::memcmp(out.data(), sums.data(), out.size() * sizeof(Element)), 0)
      << to_string(dtype);
}

TEST(Experts, EveryFloatIsSummed) {
  run_threads(3, [](Communicator& comm) {
    check_dtype<bf16>(comm, Dtype::bf16);
    check_dtype<f16>(comm, Dtype::f16);
    check_dtype<float>(comm, Dtype::f32);
    check_dtype<double>(comm, Dtype::f64);
  });
}

TEST(Experts, GatherListGivesTheRowsWhereTheyLie) {
  run_threads(3, [](Communicator& comm) {
    Shape shape{.options = {.experts = 6, .k = 2, .alignment = 4},
                .chosen = {{0, 5, 3, 1}, {5, 0}, {}},
                .hidden = 5,
                .registered = true};
    ExpertExchange exchange(comm, shape.options);
    const Routing routing = exchange.route(
        std::span<const std::int32_t>(shape.chosen[static_cast<std::size_t>(comm.rank())]));
    const Floats tokens(comm, shape.tokens(comm.rank()) * shape.hidden, true);
    for (std::size_t i = 0; i < tokens.size; ++i) {
      tokens.data[i] = value_of(comm.rank(), i / shape.hidden, i % shape.hidden);
    }
    const auto list = exchange.gather_list(routing, tokens.bytes(), shape.hidden * sizeof(float));
    std::vector<float> rows(routing.rows() * shape.hidden, 0.0F);
    for (std::size_t row = 0; row < list.size(); ++row) {
      ASSERT_EQ(list[row] == nullptr, routing.sources()[row].rank < 0);
      if (list[row] != nullptr) {
        std::memcpy(&rows[row * shape.hidden], list[row], shape.hidden * sizeof(float));
      }
    }
    EXPECT_TRUE(rows_are_right(shape, routing, rows));
    exchange.end_gather();
  });
}

}  // namespace
}  // namespace unisono::experts::testing
