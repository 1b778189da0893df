#include "network_model/simulator/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace unisono::network_model {
namespace {

using Routes = std::vector<std::vector<int>>;

std::vector<double> rates(const std::vector<double>& capacities, const Routes& routes) {
  FairShare shares(capacities);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    shares.begin(static_cast<int>(i), routes[i]);
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

// The parking lot: one flow over all links, and one flow over each link.
TEST(FairShare, ParkingLot) {
  EXPECT_EQ(rates({10, 10, 10}, {{0, 1, 2}, {0}, {1}, {2}}), (std::vector<double>{5, 5, 5, 5}));
}

// Link 0 (10) has three flows. Link 1 holds one of them to 1, and the other two share 9.
TEST(FairShare, WhatOneCannotUseGoesToTheOthers) {
  EXPECT_EQ(rates({10, 1}, {{0}, {0}, {0, 1}}), (std::vector<double>{4.5, 4.5, 1}));
}

// Similar to Bertsekas and Gallager, figure 6.17: levels 1/3, 2/3, 1.
TEST(FairShare, SeveralLevels) {
  const std::vector<double> found = rates({1, 1, 1, 2}, {{0}, {1, 2}, {1}, {1}, {2, 3}});
  const std::vector<double> wanted = {1, 1.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
  }
}

// A flow that goes over two links by halves fills both links.
TEST(FairShare, PartsOfAFlowTakePartsOfLinks) {
  FairShare shares({10, 10});
  const std::vector<int> both = {0, 1};
  const std::vector<int> first = {0};
  const std::vector<double> halves = {0.5, 0.5};
  shares.begin(0, both, halves);
  shares.settle();
  EXPECT_DOUBLE_EQ(shares.rate(0), 20);
  shares.begin(1, first);
  shares.settle();
  EXPECT_DOUBLE_EQ(shares.rate(0), 20.0 / 3);  // the demand on the first link is 1.5 times a flow's
                                               // rate
  EXPECT_DOUBLE_EQ(shares.rate(1), 20.0 / 3);
  shares.end(0);
  EXPECT_EQ(shares.settle(), (std::vector<int>{1}));
  EXPECT_DOUBLE_EQ(shares.rate(1), 10);
}

// Computes rates from the definition alone: raises all open flows in small equal steps until
// nothing more fits.
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

// Starts and ends flows in any order, one by one or several at once. Expects the rates of the naive
// solver, which has no memory, and a report of each flow whose rate changed.
class Crowd {
 public:
  explicit Crowd(unsigned seed) : random_(seed), capacities_(12) {
    for (double& capacity : capacities_) {
      capacity = 1 + static_cast<double>(random_() % 50);
    }
    shares_.emplace(capacities_);
  }

  void come() {
    routes_.emplace_back();
    for (int link = 0; link < 12; ++link) {
      if (random_() % 6 == 0) {
        routes_.back().push_back(link);
      }
    }
    if (routes_.back().empty()) {
      routes_.back().push_back(static_cast<int>(random_() % 12));
    }
    const int flow = static_cast<int>(routes_.size()) - 1;
    shares_->begin(flow, routes_.back());
    present_.push_back(flow);
    known_[flow] = -1;
  }
  void go() {
    if (!present_.empty()) {
      const auto gone = present_.begin() + static_cast<std::ptrdiff_t>(random_() % present_.size());
      shares_->end(*gone);
      present_.erase(gone);
    }
  }
  unsigned chance(unsigned of) { return static_cast<unsigned>(random_() % of); }

  void check() {
    for (const int flow : shares_->settle()) {
      ASSERT_NE(shares_->rate(flow), known_[flow]);
      known_[flow] = shares_->rate(flow);
    }
    Routes routes;
    for (const int flow : present_) {
      routes.push_back(routes_[static_cast<std::size_t>(flow)]);
    }
    const std::vector<double> wanted = naive(capacities_, routes);
    for (std::size_t i = 0; i < present_.size(); ++i) {
      ASSERT_NEAR(shares_->rate(present_[i]), wanted[i], 1e-9 * wanted[i]);
      ASSERT_EQ(shares_->rate(present_[i]), known_[present_[i]]);
    }
  }

 private:
  std::mt19937 random_;
  std::vector<double> capacities_;
  std::optional<FairShare> shares_;
  std::deque<std::vector<int>> routes_;
  std::vector<int> present_;
  std::map<int, double> known_;  // latest reported rate
};

TEST(FairShare, IsTheNaiveSolutionWhateverCameBefore) {
  for (unsigned round = 0; round < 100; ++round) {
    Crowd crowd(round);
    for (int flow = 0; flow < 40; ++flow) {
      crowd.come();
      if (crowd.chance(3) == 0) {
        crowd.go();
      }
      crowd.check();
    }
  }
}

TEST(FairShare, IsTheNaiveSolutionWhereManyComeAndGoAtOnce) {
  for (unsigned round = 0; round < 100; ++round) {
    Crowd crowd(1000 + round);
    for (int turn = 0; turn < 20; ++turn) {
      for (unsigned coming = crowd.chance(8); coming > 0; --coming) {
        crowd.come();
      }
      for (unsigned going = crowd.chance(6); going > 0; --going) {
        crowd.go();
      }
      crowd.check();
    }
  }
}

std::vector<int> sorted(std::vector<int> flows) {
  std::sort(flows.begin(), flows.end());
  return flows;
}

// Link 1 has room for both flows as long as each has no more than the rate that its other link
// allows. A third flow fills the link earlier; when it ends, the link has room again.
TEST(FairShare, ALinkThatWasCrowdedHoldsNobodyBack) {
  const Routes routes = {{0, 1}, {1, 2}, {1}};
  FairShare shares({4, 7, 3});
  for (int flow = 0; flow < 2; ++flow) {
    shares.begin(flow, routes[static_cast<std::size_t>(flow)]);
  }
  shares.settle();
  EXPECT_EQ(shares.rate(0), 4);
  EXPECT_EQ(shares.rate(1), 3);
  shares.begin(2, routes[2]);
  shares.settle();
  EXPECT_DOUBLE_EQ(shares.rate(0), 7.0 / 3);
  shares.end(2);
  EXPECT_EQ(sorted(shares.settle()), (std::vector<int>{0, 1}));
  EXPECT_EQ(shares.rate(0), 4);
  EXPECT_EQ(shares.rate(1), 3);
}

// Counts bytes, and the time with at least one flow.
TEST(FairShare, KnowsWhatALinkWasUsedFor) {
  const Routes routes = {{0, 1}, {1}};
  const std::vector<double> halves = {0.5};
  FairShare shares({10, 10});
  shares.begin(0, routes[0], {}, 1);
  shares.begin(1, routes[1], halves, 2);
  shares.settle();
  shares.end(0, 4, 12);
  shares.end(1, 7, 8);
  shares.pass_by(0, 3, 0.5);
  EXPECT_DOUBLE_EQ(shares.use(0).bytes, 15);
  EXPECT_DOUBLE_EQ(shares.use(0).busy_us, 3.5);
  EXPECT_DOUBLE_EQ(shares.use(1).bytes, 16);
  EXPECT_DOUBLE_EQ(shares.use(1).busy_us, 6);
}

// A flow replaces another one with the same links: no other flow changes its rate.
TEST(FairShare, ToldAreOnlyFlowsWhoseRatesChange) {
  const Routes routes = {{0, 1}, {1, 2}, {2}, {0, 1}};
  FairShare shares({6, 8, 12});
  for (int flow = 0; flow < 3; ++flow) {
    shares.begin(flow, routes[static_cast<std::size_t>(flow)]);
  }
  EXPECT_EQ(sorted(shares.settle()), (std::vector<int>{0, 1, 2}));
  shares.end(0);
  shares.begin(3, routes[3]);
  EXPECT_EQ(shares.settle(), (std::vector<int>{3}));
  EXPECT_EQ(shares.rate(3), 4);
  EXPECT_TRUE(shares.settle().empty());
}

}  // namespace
}  // namespace unisono::network_model
