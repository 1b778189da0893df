#include "topology/routes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/testing_sanitizers.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

// Returns distances in links, from a plain search that does not pass through ranks.
std::vector<int> distances(const Topology& topology, int rank) {
  std::vector<bool> has_rank(topology.devices.size());
  for (const int device : topology.ranks) {
    has_rank[static_cast<std::size_t>(device)] = true;
  }
  const int start = topology.ranks[static_cast<std::size_t>(rank)];
  std::vector<int> distance(topology.devices.size(), std::numeric_limits<int>::max());
  distance[static_cast<std::size_t>(start)] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : topology.links) {
      const int from = distance[static_cast<std::size_t>(link.from)];
      if (from == std::numeric_limits<int>::max() ||
          (has_rank[static_cast<std::size_t>(link.from)] && link.from != start)) {
        continue;
      }
      int& to = distance[static_cast<std::size_t>(link.to)];
      if (from + 1 < to) {
        to = from + 1;
        changed = true;
      }
    }
  }
  return distance;
}

void expect_route_is_right(const Topology& topology, Router& router, int from, int to,
                           const std::vector<int>& distance) {
  const std::vector<int> route = router.route(from, to);
  int at = topology.ranks[static_cast<std::size_t>(from)];
  for (const int index : route) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    ASSERT_EQ(link.from, at);
    at = link.to;
  }
  ASSERT_EQ(at, topology.ranks[static_cast<std::size_t>(to)]);
  EXPECT_EQ(static_cast<int>(route.size()), distance[static_cast<std::size_t>(at)]);
}

TEST(Routes, AreShortestOnEveryPreset) {
  for (const std::string name : {"dgx_h100:nodes=2", "pcie_server:nodes=3", "gb200_nvl72:racks=2",
                                 "fat_tree:hosts=15,ports=4", "rail_optimised:nodes=33",
                                 "dragonfly:groups=5", "torus:x=4,y=3,z=2"}) {
    SCOPED_TRACE(name);
    const Topology topology = *make_preset(name).value;
    Router router(topology);
    for (int from = 0; from < topology.rank_count(); from += 7) {
      const std::vector<int> distance = distances(topology, from);
      for (int to = 0; to < topology.rank_count(); ++to) {
        expect_route_is_right(topology, router, from, to, distance);
      }
    }
  }
}

TEST(Routes, AreShortestOnRandomDirectedGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Topology topology;
    for (int i = 0; i < 24; ++i) {
      add_device(topology, std::to_string(i), DeviceKind::network_switch);
    }
    for (int i = 0; i < 5; ++i) {
      topology.ranks.push_back(i);
    }
    std::uniform_int_distribution<int> device(0, 23);
    for (int i = 0; i < 60; ++i) {
      const int from = device(random);
      const int to = device(random);
      if (from != to) {
        topology.links.push_back({.from = from, .to = to, .latency_us = 1, .bytes_per_us = 1});
      }
    }
    Router router(topology);
    for (int from = 0; from < 5; ++from) {
      const std::vector<int> distance = distances(topology, from);
      for (int to = 0; to < 5; ++to) {
        if (distance[static_cast<std::size_t>(to)] == std::numeric_limits<int>::max()) {
          EXPECT_THROW(router.route(from, to), Error);
        } else {
          expect_route_is_right(topology, router, from, to, distance);
        }
      }
    }
  }
}

TEST(Routes, PreferTheWiderOfTwoShortestPaths) {
  Topology topology;
  const int a = add_device(topology, "a", DeviceKind::gpu);
  const int b = add_device(topology, "b", DeviceKind::gpu);
  topology.ranks = {a, b};
  for (const double width : {10.0, 30.0, 20.0}) {
    const int via = add_device(topology, std::to_string(width), DeviceKind::network_switch);
    connect(topology, a, via, 1, width);
    connect(topology, via, b, 1, 1000);
  }
  Router router(topology);
  const std::vector<int> route = router.route(0, 1);
  ASSERT_EQ(route.size(), 2U);
  EXPECT_EQ(topology.links[static_cast<std::size_t>(route[0])].bytes_per_us, 30);
}

// Every rank sends to the rank at a fixed distance: a full fat tree then uses no link twice.
TEST(Routes, ShiftsShareNoLinkOfAFatTree) {
  for (const std::string name : {"fat_tree:hosts=16,ports=4", "fat_tree:hosts=128,ports=8"}) {
    const Topology topology = *make_preset(name).value;
    Router router(topology);
    const int ranks = topology.rank_count();
    for (int shift = 1; shift < ranks; ++shift) {
      std::map<int, int> users;
      for (int from = 0; from < ranks; ++from) {
        for (const int link : router.route(from, (from + shift) % ranks)) {
          EXPECT_EQ(++users[link], 1) << name << " shift " << shift << " link " << link;
        }
      }
    }
  }
}

// All traffic that enters at the source leaves at the target, whatever lies between.
TEST(Routes, AdaptiveOnesSplitEvenlyOverAllWays) {
  for (const std::string name : {"fat_tree:hosts=128,ports=8", "torus:x=4,y=3,z=2", "dgx_h100",
                                 "rail_optimised:nodes=300", "dragonfly"}) {
    SCOPED_TRACE(name);
    const Topology topology = *make_preset(name).value;
    Router router(topology, RouteChoice::adaptive);
    Router fixed(topology);
    for (int to = 1; to < topology.rank_count(); to += 7) {
      const std::vector<int> one = fixed.route(0, to);
      const std::vector<int>& links = router.route(0, to);
      ASSERT_EQ(router.shares().size(), links.size());
      std::map<int, double> comes;
      std::map<int, std::map<int, int>> parts;  // by device: how many links have a share
      double hops = 0;
      for (std::size_t i = 0; i < links.size(); ++i) {
        const Link& link = topology.links[static_cast<std::size_t>(links[i])];
        comes[link.to] += router.shares()[i];
        comes[link.from] -= router.shares()[i];
        ++parts[link.from][static_cast<int>(std::lround(1e6 * router.shares()[i]))];
        hops += router.shares()[i];
      }
      EXPECT_NEAR(hops, static_cast<double>(one.size()), 1e-9);  // the length of the shortest path
      for (const auto& [device, shares] : parts) {
        EXPECT_EQ(shares.size(), 1U) << topology.devices[static_cast<std::size_t>(device)].name;
      }
      for (const auto& [device, sum] : comes) {
        const double wanted = device == topology.ranks[0]                              ? -1
                              : device == topology.ranks[static_cast<std::size_t>(to)] ? 1
                                                                                       : 0;
        EXPECT_NEAR(sum, wanted, 1e-9);
      }
    }
  }
}

TEST(Routes, HashedOnesUseAllSpinesAndStayAsTheyAre) {
  const Topology topology = *make_preset("fat_tree:hosts=128,ports=8").value;
  Router router(topology, RouteChoice::hashed);
  std::map<int, int> first_up;
  for (int to = 64; to < 128; ++to) {
    const std::vector<int> route = router.route(0, to);
    ASSERT_EQ(route.size(), 6U);
    ++first_up[route[1]];
    EXPECT_EQ(Router(topology, RouteChoice::hashed).route(0, to), route);
  }
  EXPECT_EQ(first_up.size(), 4U);
}

TEST(Routes, TheSamePairHasTheSameRoute) {
  const Topology topology = *make_preset("rail_optimised:nodes=40").value;
  Router router(topology);
  const std::vector<int> first = router.route(3, 300);
  (void)router.route(9, 200);
  EXPECT_EQ(router.route(3, 300), first);
  EXPECT_EQ(Router(topology).route(3, 300), first);
}

// A search for any pair of switches finds the same paths as the search for one pair of their
// siblings.
void expect_the_same_for_siblings(const Topology& topology, int step) {
  for (const RouteChoice choice :
       {RouteChoice::fixed, RouteChoice::hashed, RouteChoice::adaptive}) {
    Router router(topology, choice);
    Router searching = Router::searching(topology, choice);
    for (int from = 0; from < topology.rank_count(); from += step) {
      for (int to = from % 5; to < topology.rank_count(); to += step) {
        std::vector<int> route;
        try {
          route = searching.route(from, to);
        } catch (const Error&) {
          EXPECT_THROW(router.route(from, to), Error);
          continue;
        }
        ASSERT_EQ(router.route(from, to), route) << from << " to " << to;
        ASSERT_EQ(router.shares(), searching.shares()) << from << " to " << to;
      }
    }
  }
}

TEST(Routes, AreTheSameForSiblingsOnEveryPreset) {
  for (const std::string name :
       {"dgx_h100:nodes=5", "pcie_server:nodes=3", "gb200_nvl72:racks=2",
        "fat_tree:hosts=120,ports=8", "rail_optimised:nodes=70", "rail_optimised:nodes=1100",
        "dragonfly:groups=5", "torus:x=4,y=3,z=2"}) {
    SCOPED_TRACE(name);
    const Topology topology = *make_preset(name).value;
    expect_the_same_for_siblings(topology, 1 + topology.rank_count() / repetitions(97));
  }
}

// Returns layers of switches. Most switches of a lower layer lead to the same upper switches; some
// have a link that is missing, narrower, one way, or to each other. Ranks are connected to
// switches, NICs and other ranks.
Topology random_layers(std::mt19937& random) {
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  Topology topology;
  std::vector<int> above;
  for (int layer = 0; layer < 3; ++layer) {
    std::vector<int> here;
    for (int i = up_to(3); i >= 0; --i) {
      here.push_back(add_device(topology, std::to_string(layer) + "." + std::to_string(i),
                                DeviceKind::network_switch));
      for (const int upper : above) {
        const int kind = up_to(24);
        if (kind == 0) {
          topology.links.push_back(
              {.from = here.back(), .to = upper, .latency_us = 1, .bytes_per_us = 1});
        } else if (kind > 1) {
          connect(topology, here.back(), upper, 1, kind == 2 ? 1 : 2);
          if (kind == 3 || kind > 20) {
            connect(topology, here.back(), upper, 1, kind == 3 ? 1 : 2);  // a parallel link
          }
        }
      }
      if (here.size() > 1 && up_to(9) == 0) {
        connect(topology, here.front(), here.back(), 1, 1);
      }
    }
    above.insert(above.end(), here.begin(), here.end());
  }
  for (int rank = 0; rank < 9; ++rank) {
    const int host = add_device(topology, "host" + std::to_string(rank), DeviceKind::node);
    int way = host;
    for (int i = up_to(2); i > 0; --i) {
      const int nic =
          add_device(topology, "nic" + std::to_string(topology.devices.size()), DeviceKind::nic);
      for (int links = up_to(7) == 0 ? 2 : 1; links > 0; --links) {
        connect(topology, way, nic, 1, 3);
      }
      way = nic;
    }
    const auto place = static_cast<std::size_t>(up_to(static_cast<int>(above.size()) - 1));
    for (int links = up_to(7) == 0 ? 2 : 1; links > 0; --links) {
      connect(topology, way, above[place], 1, 3);
    }
    topology.ranks.push_back(host);
  }
  return topology;
}

TEST(Routes, AreTheSameForSiblingsOnRandomLayers) {
  std::mt19937 random(11);
  for (int round = 0; round < repetitions(300); ++round) {
    SCOPED_TRACE(round);
    expect_the_same_for_siblings(random_layers(random), 1);
  }
}

}  // namespace
}  // namespace unisono
