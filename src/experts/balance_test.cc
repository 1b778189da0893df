// Compares placements with EPLB's published examples and with a simple greedy method.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "unisono/error.hpp"
#include "unisono/parallel/expert_balance.hpp"

namespace unisono {
namespace {

using Places = std::vector<std::vector<int>>;

// The two layers of the example in EPLB's README (DeepSeek-AI, 2025): 12 experts in 4 groups, 16
// physical experts on 8 ranks of 2 hosts.
TEST(Balance, IsThatOfThePublishedExamples) {
  const BalanceOptions options{.ranks = 8, .physical_experts = 16, .groups = 4, .hosts = 2};
  const std::vector<double> first = {90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
  EXPECT_EQ(balance(first, options).experts_of_rank,
            (Places{{5, 6}, {5, 7}, {8, 4}, {3, 4}, {10, 9}, {10, 2}, {0, 1}, {11, 1}}));
  const std::vector<double> second = {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27};
  EXPECT_EQ(balance(second, options).experts_of_rank,
            (Places{{7, 10}, {6, 8}, {6, 11}, {8, 9}, {2, 4}, {5, 1}, {5, 0}, {3, 1}}));
}

// Returns the greatest load of a rank under a simple greedy method, or -1 if that method places an
// expert twice on a rank.
double greedy(const std::vector<double>& loads, int ranks, int physical_experts) {
  std::vector<int> copies(loads.size(), 1);
  for (int extra = static_cast<int>(loads.size()); extra < physical_experts; ++extra) {
    std::size_t heaviest = 0;
    for (std::size_t i = 1; i < loads.size(); ++i) {
      if (loads[i] / copies[i] > loads[heaviest] / copies[heaviest]) {
        heaviest = i;
      }
    }
    ++copies[heaviest];
  }
  std::vector<std::pair<double, std::size_t>> all;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    all.insert(all.end(), static_cast<std::size_t>(copies[i]), {loads[i] / copies[i], i});
  }
  std::sort(all.rbegin(), all.rend());
  std::set<std::pair<std::size_t, std::size_t>> held;
  std::vector<double> load(static_cast<std::size_t>(ranks), 0.0);
  std::vector<int> taken(load.size(), 0);
  for (const auto& [one, expert] : all) {
    std::size_t least = load.size();
    for (std::size_t rank = 0; rank < load.size(); ++rank) {
      if (taken[rank] < physical_experts / ranks &&
          (least == load.size() || load[rank] < load[least])) {
        least = rank;
      }
    }
    load[least] += one;
    ++taken[least];
    if (!held.emplace(least, expert).second) {
      return -1;
    }
  }
  return *std::max_element(load.begin(), load.end());
}

void expect_whole(const ExpertPlaces& places, const std::vector<double>& loads,
                  int physical_experts) {
  std::set<int> held;
  std::size_t all = 0;
  for (const std::vector<int>& rank : places.experts_of_rank) {
    EXPECT_EQ(std::set<int>(rank.begin(), rank.end()).size(), rank.size());
    EXPECT_EQ(rank.size(),
              static_cast<std::size_t>(physical_experts) / places.experts_of_rank.size());
    held.insert(rank.begin(), rank.end());
    all += rank.size();
  }
  EXPECT_EQ(held.size(), loads.size());
  EXPECT_EQ(all, static_cast<std::size_t>(physical_experts));
  EXPECT_NEAR(std::accumulate(places.load_of_rank.begin(), places.load_of_rank.end(), 0.0),
              std::accumulate(loads.begin(), loads.end(), 0.0), 1e-6);
}

TEST(Balance, IsAtLeastAsEvenAsTheGreedyMethod) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int better = 0;
  int compared = 0;
  for (int i = 0; i < 2000; ++i) {
    const int ranks = 1 + below(8);
    const int experts = ranks * (1 + below(8));
    const int physical_experts =
        experts + ranks * below(1 + std::min(3, experts - experts / ranks));
    std::vector<double> loads;
    for (int expert = 0; expert < experts; ++expert) {
      loads.push_back(below(3) == 0 ? below(2000) : below(100));
    }
    const ExpertPlaces places =
        balance(loads, {.ranks = ranks, .physical_experts = physical_experts});
    expect_whole(places, loads, physical_experts);
    const double ours = *std::max_element(places.load_of_rank.begin(), places.load_of_rank.end());
    const double theirs = greedy(loads, ranks, physical_experts);
    if (theirs < 0) {
      continue;  // the greedy placement is invalid
    }
    ++compared;
    EXPECT_LE(ours, theirs * (1 + 1e-9)) << "case " << i << ": " << ranks << " ranks, " << experts
                                         << " experts, " << physical_experts << " physical experts";
    better += ours < theirs * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(compared, 900);
  EXPECT_GT(better, 200);
}

TEST(Balance, OfGroupsIsWhole) {
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> loads(64);
    std::generate(loads.begin(), loads.end(), [&] { return static_cast<double>(random() % 1000); });
    const ExpertPlaces places =
        balance(loads, {.ranks = 8, .physical_experts = 72, .groups = 8, .hosts = 2});
    expect_whole(places, loads, 72);
    for (int group = 0; group < 8; ++group) {  // each group on one host
      std::set<int> hosts;
      for (int rank = 0; rank < 8; ++rank) {
        for (const int expert : places.experts_of_rank[static_cast<std::size_t>(rank)]) {
          if (expert / 8 == group) {
            hosts.insert(rank / 4);
          }
        }
      }
      EXPECT_EQ(hosts.size(), 1U);
    }
  }
}

// Each host has a group of two experts, but three physical experts to fill, so it also needs an
// expert from another group.
TEST(Balance, GroupsThatDoNotFillTheirHostsAreLeftOutOfAccount) {
  const BalanceOptions options{.ranks = 2, .physical_experts = 6, .groups = 2, .hosts = 2};
  const ExpertPlaces places = balance(std::vector<double>{4, 3, 2, 1}, options);
  for (const std::vector<int>& here : places.experts_of_rank) {
    EXPECT_EQ(std::set<int>(here.begin(), here.end()).size(), 3U);
  }
}

TEST(Balance, MovesAreThoseThatAreNeeded) {
  const Places before = {{0, 1}, {2, 3}, {0, 2}};
  const Places after = {{0, 2}, {2, 3}, {1, 0}};
  const auto moves = find_expert_moves(before, after);
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0].expert, 2);
  EXPECT_EQ(moves[0].to, 0);
  EXPECT_EQ(moves[1].expert, 1);
  EXPECT_EQ(moves[1].from, 0);
  EXPECT_EQ(moves[1].to, 2);
  EXPECT_TRUE(find_expert_moves(before, before).empty());
  EXPECT_THROW(find_expert_moves(before, Places{{9}, {0}, {0}}), Error);
}

TEST(Balance, SaysWhatIsWrong) {
  const auto said = [](std::vector<double> loads, const BalanceOptions& options) -> std::string {
    try {
      balance(loads, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(said({1, 2, 3}, {.ranks = 2}).find("2 ranks do not divide 3 physical experts"),
            std::string::npos);
  EXPECT_NE(
      said({1, 2, 3}, {.physical_experts = 2}).find("3 experts do not fit on 2 physical experts"),
      std::string::npos);
  EXPECT_NE(said({1, -2}, {.ranks = 1}).find("the load of expert 1 is -2"), std::string::npos);
  EXPECT_NE(said({1, 2}, {.ranks = 1, .physical_experts = 3}).find("has no use"),
            std::string::npos);
}

}  // namespace
}  // namespace unisono
