// Tests exchanges between several hosts with several ranks each: results are equal, and each row is
// sent once.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "experts/testing_checks.h"
#include "unisono/statistics.hpp"

namespace unisono::experts::testing {
namespace {

// Runs `body` on ranks as threads. `hosts`: the host name of each rank.
void run_on_hosts(const std::vector<std::string>& hosts,
                  const std::function<void(Communicator&)>& body) {
  const std::string job = comm::testing::unique_name("experts-hosts");
  const int ranks = static_cast<int>(hosts.size());
  const auto said = comm::testing::as_threads(ranks, [&](int rank) {
    ConnectOptions options = comm::testing::options_for(rank, ranks, job);
    options.address = comm::testing::loopback_address(job);
    options.token = "experts-on-hosts";
    options.host = hosts[static_cast<std::size_t>(rank)];
    Communicator comm = Communicator::connect(options);
    body(comm);
    return std::string();
  });
  for (const std::string& text : said) {
    EXPECT_EQ(text, "");
  }
}

class SeveralHosts : public ::testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(With, SeveralHosts,
                         ::testing::Values(std::vector<std::string>{"a", "a", "b", "b"},
                                           std::vector<std::string>{"a", "b", "a", "b"},
                                           std::vector<std::string>{"a", "b", "b"},
                                           std::vector<std::string>{"a", "a", "b", "c", "c"}));

TEST_P(SeveralHosts, RandomShapesAreAsOneProcessHasThem) {
  run_on_hosts(GetParam(), [](Communicator& comm) { check_random_shapes(comm, cases() / 20 + 1); });
}

std::uint64_t bytes_of_all_to_alls(const Communicator& comm) {
  for (const Statistics::Row& row : comm.statistics().rows) {
    if (row.what == "all_to_all_v") {
      return row.bytes;
    }
  }
  return 0;
}

// All tokens are on one host, so that each rank either sends or receives, and the statistics count
// the rows between hosts.
TEST(ExpertHosts, ATokenCrossesOnceToEachHostAndEachRowOnceBack) {
  constexpr std::size_t kTokens = 50;
  constexpr std::size_t kRowBytes = 1000;
  constexpr int kExperts = 12;
  std::mutex mutex;
  std::uint64_t sent = 0;
  std::uint64_t expected = 0;
  std::uint64_t back = 0;
  std::uint64_t expected_back = 0;
  run_on_hosts({"a", "a", "b", "b", "c", "c"}, [&](Communicator& comm) {
    std::vector<std::int32_t> chosen;
    std::uint64_t inter_host = 0;
    std::uint64_t choices = 0;  // choices of experts on other hosts
    for (std::size_t token = 0; token < kTokens && comm.host(comm.rank()) == 0; ++token) {
      std::set<int> hosts;
      for (int slot = 0; slot < 4; ++slot) {
        const auto place = static_cast<int>(token) * 5 + slot * slot + 3 * comm.rank();
        chosen.push_back(place % kExperts);
        hosts.insert(chosen.back() / (kExperts / 3));
        choices += chosen.back() < kExperts / 3 ? 0U : 1U;
      }
      inter_host += hosts.size() - hosts.count(0);
    }
    ExpertExchange exchange(comm, {.experts = kExperts, .k = 4});
    const Routing routing = exchange.route(std::span<const std::int32_t>(chosen));
    const std::vector<std::byte> tokens(routing.tokens() * kRowBytes, std::byte{1});
    std::vector<std::byte> rows(routing.rows() * kRowBytes);
    const std::uint64_t before = bytes_of_all_to_alls(comm);
    exchange.dispatch(routing, {{.in = tokens, .out = rows, .row_bytes = kRowBytes}});
    const std::uint64_t bytes = bytes_of_all_to_alls(comm) - before;
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::size_t{0},
                              [](std::size_t sum, std::byte one) {
                                return sum + std::to_integer<std::size_t>(one);
                              }),
              rows.size());
    std::vector<std::byte> sums(tokens.size());
    exchange.combine(routing, {.rows = rows,
                               .out = sums,
                               .dtype = Dtype::bf16,
                               .hidden = kRowBytes / size_of(Dtype::bf16)});
    const std::lock_guard lock(mutex);
    back += comm.host(comm.rank()) == 0 ? bytes_of_all_to_alls(comm) - before - bytes : 0;
    expected_back += choices * kRowBytes;
    sent += comm.host(comm.rank()) == 0 ? bytes : 0;
    expected += inter_host * kRowBytes;
  });
  EXPECT_EQ(sent, expected);
  EXPECT_NE(sent, 0U);
  EXPECT_EQ(back, expected_back);  // every row, because the order of addition needs every one
}

}  // namespace
}  // namespace unisono::experts::testing
