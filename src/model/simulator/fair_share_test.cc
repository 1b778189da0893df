#include "model/simulator/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace unisono::model {
namespace {

using Routes = std::vector<std::vector<int>>;

std::vector<double> rates(const std::vector<double>& capacities, const Routes& routes) {
  FairShare shares(capacities);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    shares.add(static_cast<int>(i), routes[i]);
  }
  shares.settle();
  std::vector<double> result;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    result.push_back(shares.rate(static_cast<int>(i)));
  }
  return result;
}

TEST(FairShare, OneFlowHasTheNarrowestLink) {
  EXPECT_EQ(rates({10, 4, 7}, {{0, 1, 2}}), (std::vector<double>{4}));
}

TEST(FairShare, EqualFlowsShareEqually) {
  EXPECT_EQ(rates({12}, {{0}, {0}, {0}}), (std::vector<double>{4, 4, 4}));
}

// The parking lot: one flow over all links, one over each.
TEST(FairShare, ParkingLot) {
  EXPECT_EQ(rates({10, 10, 10}, {{0, 1, 2}, {0}, {1}, {2}}), (std::vector<double>{5, 5, 5, 5}));
}

// Link 0 (10) has three flows, one of which is held to 1 by link 1: the other two share 9.
TEST(FairShare, WhatOneCannotUseGoesToTheOthers) {
  EXPECT_EQ(rates({10, 1}, {{0}, {0}, {0, 1}}), (std::vector<double>{4.5, 4.5, 1}));
}

// Bertsekas and Gallager, figure 6.17 in spirit: levels 1/3, 2/3, 1.
TEST(FairShare, SeveralLevels) {
  const std::vector<double> found = rates({1, 1, 1, 2}, {{0}, {1, 2}, {1}, {1}, {2, 3}});
  const std::vector<double> wanted = {1, 1.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
  }
}

// A flow that goes over two links by halves fills both.
TEST(FairShare, PartsOfAFlowTakePartsOfLinks) {
  FairShare shares({10, 10});
  const std::vector<int> both = {0, 1};
  const std::vector<int> first = {0};
  const std::vector<double> halves = {0.5, 0.5};
  shares.add(0, both, halves);
  shares.settle();
  EXPECT_DOUBLE_EQ(shares.rate(0), 20);
  shares.add(1, first);
  shares.settle();
  EXPECT_DOUBLE_EQ(shares.rate(0), 20.0 / 3);  // 1.5 of the first link is asked for
  EXPECT_DOUBLE_EQ(shares.rate(1), 20.0 / 3);
  shares.remove(0);
  EXPECT_EQ(shares.settle(), (std::vector<int>{1}));
  EXPECT_DOUBLE_EQ(shares.rate(1), 10);
}

// By the definition alone: raises all open flows by the same small steps of what still fits.
std::vector<double> naive(const std::vector<double>& capacities, const Routes& routes) {
  std::vector<double> result(routes.size(), 0);
  std::vector<bool> open(routes.size(), true);
  while (std::count(open.begin(), open.end(), true) > 0) {
    std::vector<double> left = capacities;
    std::vector<int> users(capacities.size());
    for (std::size_t i = 0; i < routes.size(); ++i) {
      for (const int link : routes[i]) {
        left[static_cast<std::size_t>(link)] -= result[i];
        users[static_cast<std::size_t>(link)] += open[i] ? 1 : 0;
      }
    }
    double raise = std::numeric_limits<double>::infinity();
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      if (users[link] > 0) {
        raise = std::min(raise, left[link] / users[link]);
      }
    }
    for (std::size_t i = 0; i < routes.size(); ++i) {
      result[i] += open[i] ? raise : 0;
    }
    for (std::size_t i = 0; i < routes.size(); ++i) {
      for (const int link : routes[i]) {
        const auto at = static_cast<std::size_t>(link);
        if (users[at] > 0 && left[at] / users[at] <= raise * (1 + 1e-12) + 1e-300) {
          open[i] = false;
        }
      }
    }
  }
  return result;
}

// Flows come and go in any order; the rates are always those of the naive solver, which knows
// nothing of what was before.
TEST(FairShare, IsTheNaiveSolutionWhateverCameBefore) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> capacities(12);
    for (double& capacity : capacities) {
      capacity = 1 + static_cast<double>(random() % 50);
    }
    FairShare shares(capacities);
    std::vector<std::vector<int>> all(40);
    std::vector<int> present;
    for (std::size_t flow = 0; flow < all.size(); ++flow) {
      for (int link = 0; link < 12; ++link) {
        if (random() % 6 == 0) {
          all[flow].push_back(link);
        }
      }
      if (all[flow].empty()) {
        all[flow].push_back(static_cast<int>(random() % 12));
      }
      shares.add(static_cast<int>(flow), all[flow]);
      present.push_back(static_cast<int>(flow));
      if (random() % 3 == 0) {
        const std::size_t gone = random() % present.size();
        shares.remove(present[gone]);
        present.erase(present.begin() + static_cast<std::ptrdiff_t>(gone));
      }
      shares.settle();
      Routes routes;
      for (const int id : present) {
        routes.push_back(all[static_cast<std::size_t>(id)]);
      }
      const std::vector<double> wanted = naive(capacities, routes);
      for (std::size_t i = 0; i < present.size(); ++i) {
        ASSERT_NEAR(shares.rate(present[i]), wanted[i], 1e-9 * wanted[i]);
      }
    }
  }
}

}  // namespace
}  // namespace unisono::model
