// Compares the experts' traffic with counting, and with published times.
#include "network_model/expert_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "topology/presets.h"

namespace unisono::network_model {
namespace {

Topology make(const std::string& text) {
  Parsed<Topology> made = make_preset(text);
  EXPECT_TRUE(made) << text << ": " << made.message;
  return made ? std::move(*made.value) : Topology{};
}

struct Measured {
  int nodes = 0;
  ExpertShape shape;
  double combine_us = 0;
  double dispatch_us = 0;
};

std::vector<Measured> load() {
  std::ifstream file(UNISONO_MOE_DATA "/deepep_low_latency.csv");
  std::string line;
  std::getline(file, line);  // skip the names of the columns
  std::vector<Measured> rows;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Measured row;
    words >> row.nodes >> row.shape.hidden >> row.shape.tokens >> row.shape.k >>
        row.shape.experts >> row.combine_us >> row.dispatch_us;
    EXPECT_TRUE(words) << line;
    rows.push_back(row);
  }
  return rows;
}

// The cost of one more token, between the fewest and the most tokens of each machine, is within a
// tenth of the published one.
TEST(ExpertTraffic, SlopesAreThoseOfPublishedTimes) {
  std::map<std::pair<int, int>, std::pair<Measured, Measured>> ends;
  for (const Measured& row : load()) {
    const auto [found, is_new] = ends.try_emplace({row.nodes, row.shape.experts}, row, row);
    if (row.shape.tokens < found->second.first.shape.tokens) {
      found->second.first = row;
    }
    if (row.shape.tokens > found->second.second.shape.tokens) {
      found->second.second = row;
    }
  }
  int compared = 0;
  for (const auto& [machine, both] : ends) {
    const auto& [few, many] = both;
    const double tokens = many.shape.tokens - few.shape.tokens;
    if (tokens == 0) {
      continue;
    }
    // A DGX H100 has 50 GB/s per GPU.
    Topology topology = make("dgx_h100:nodes=" + std::to_string(few.nodes));
    const auto mode = ExpertMode::low_latency;
    const double dispatch = (dispatch_cost(many.shape, mode, topology).time_us -
                             dispatch_cost(few.shape, mode, topology).time_us) /
                            tokens;
    const double combine = (combine_cost(many.shape, mode, topology).time_us -
                            combine_cost(few.shape, mode, topology).time_us) /
                           tokens;
    const double of_dispatch = (many.dispatch_us - few.dispatch_us) / tokens;
    const double of_combine = (many.combine_us - few.combine_us) / tokens;
    EXPECT_NEAR(dispatch / of_dispatch, 1, 0.1) << few.nodes << " nodes";
    EXPECT_NEAR(combine / of_combine, 1, 0.1) << few.nodes << " nodes";
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

// The low-latency formula by hand: k rows per token, (R - 8) / R of them to other hosts.
TEST(ExpertTraffic, BytesOfLowLatencyAreThoseOfTheLaw) {
  const Topology topology = make("dgx_h100:nodes=4");
  const ExpertShape shape{.tokens = 128, .hidden = 7168, .experts = 256, .k = 8};
  const ExpertCost dispatch = dispatch_cost(shape, ExpertMode::low_latency, topology);
  EXPECT_NEAR(dispatch.sent_bytes, 128.0 * 8 * (7168 + 4 * 7168 / 128) * 31 / 32, 1e-3);
  EXPECT_NEAR(dispatch.host_bytes, 128.0 * 8 * (7168 + 4 * 7168 / 128) * 24 / 32, 1e-3);
  const ExpertCost combine = combine_cost(shape, ExpertMode::low_latency, topology);
  EXPECT_NEAR(combine.host_bytes, 128.0 * 8 * 2 * 7168 * 24 / 32, 1e-3);
}

// The normal mode's probabilities, counted over randomly drawn routers.
TEST(ExpertTraffic, BytesOfNormalAreThoseOfDrawnRouters) {
  constexpr int kTokens = 20000;
  const Topology topology = make("dgx_h100:nodes=2");
  const ExpertShape shape{.tokens = kTokens, .hidden = 128, .experts = 64, .k = 4};
  std::mt19937 random(5);
  double to_hosts = 0;
  double to_ranks = 0;
  for (int token = 0; token < kTokens; ++token) {  // tokens of rank 0
    std::set<int> experts;
    while (experts.size() < 4) {
      experts.insert(static_cast<int>(random() % 64));
    }
    std::set<int> ranks;
    for (const int expert : experts) {
      ranks.insert(expert / 4);
    }
    to_hosts += std::any_of(ranks.begin(), ranks.end(), [](int rank) { return rank >= 8; }) ? 1 : 0;
    // Rows at the landing rank of each host are already there.
    to_ranks += static_cast<double>(ranks.size() - ranks.count(0) - ranks.count(8));
  }
  const ExpertCost cost = dispatch_cost(shape, ExpertMode::normal, topology);
  EXPECT_NEAR(cost.host_bytes / cost.row_bytes, to_hosts, 0.02 * to_hosts);
  EXPECT_NEAR((cost.sent_bytes - cost.host_bytes) / cost.row_bytes, to_ranks, 0.02 * to_ranks);
}

TEST(ExpertTraffic, CountsOfARouting) {
  // Two ranks with two experts each, two tokens each. A token with both experts of a rank goes
  // there once; a token without experts there does not go there.
  const std::vector<std::int32_t> chosen = {0, 1, 1, 2, -1, -1, 3, -1};
  const ExpertShape shape{.hidden = 256, .experts = 4, .k = 2};
  const Counts two = dispatch_counts(chosen, shape, 2);
  EXPECT_EQ(two.send, (CountRows{{2, 1}, {0, 1}}));
  EXPECT_EQ(two.element_bytes, 256 + 8);
  EXPECT_EQ(dispatch_counts(chosen, shape, 1).send, (CountRows{{3}}));
  const Counts back = combine_counts(chosen, shape, 2);
  EXPECT_EQ(back.send, (CountRows{{2, 0}, {1, 1}}));
  EXPECT_EQ(back.element_bytes, 2 * 256);
  EXPECT_TRUE(check_counts(two).message.empty());
}

TEST(ExpertTraffic, ExpertsThatDoNotDivide) {
  std::vector<int> held;
  for (int expert = 0; expert < 11; ++expert) {
    held.push_back(rank_of_expert(expert, 11, 4));
  }
  EXPECT_EQ(held, (std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3}));
  EXPECT_EQ(rank_of_expert(1, 2, 4), 1);
}

TEST(ExpertTraffic, EdgesOfShapes) {
  const ExpertShape all{.tokens = 1, .hidden = 130, .experts = 8, .k = 8};
  EXPECT_EQ(chance_of_part(all, 1), 1);
  EXPECT_EQ(dispatch_row_bytes(130), 130 + 8);
  const Topology one = make("dgx_h100:nodes=1");
  EXPECT_EQ(dispatch_cost(all, ExpertMode::normal, one).host_bytes, 0);
  EXPECT_EQ(dispatch_cost({.hidden = 1}, ExpertMode::normal, one).bound_us, 0);
}

}  // namespace
}  // namespace unisono::network_model
