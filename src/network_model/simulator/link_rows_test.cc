#include "network_model/simulator/link_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "topology/presets.h"
#include "topology/routes.h"

namespace unisono::network_model {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// a - b - c - d, with ranks on a and d.
Topology line() {
  Topology topology;
  for (const char* name : {"a", "b", "c", "d"}) {
    add_device(topology, name, DeviceKind::node);
  }
  topology.ranks = {0, 3};
  for (int i = 0; i < 3; ++i) {
    connect(topology, i, i + 1, 1, 1000);
  }
  return topology;
}

TEST(LinkRows, ALineIsOneRowEachWay) {
  // The two links of a pair have consecutive numbers: 0, 2, 4 to the right, 1, 3, 5 to the left.
  EXPECT_EQ(first_of_rows(line()), (std::vector<int>{0, 5, 0, 5, 0, 5}));
}

TEST(LinkRows, ARankEndsARow) {
  Topology topology = line();
  topology.ranks.push_back(1);
  EXPECT_EQ(first_of_rows(topology), (std::vector<int>{0, 1, 2, 5, 2, 5}));
}

TEST(LinkRows, ADeviceWithAThirdNeighbourOrASecondLinkEndsARow) {
  Topology branch = line();
  connect(branch, 2, add_device(branch, "e", DeviceKind::node), 1, 1000);
  EXPECT_EQ(first_of_rows(branch), (std::vector<int>{0, 3, 0, 3, 4, 5, 6, 7}));

  Topology twice = line();
  connect(twice, 2, 3, 1, 1000);
  const std::vector<int> first = first_of_rows(twice);
  EXPECT_EQ(first[2], 0);
  EXPECT_EQ(first[4], 4);
  EXPECT_EQ(first[6], 6);
}

TEST(LinkRows, ACircleThatLeadsNowhereDoesNotMatter) {
  Topology topology = line();
  std::vector<int> circle;
  for (const char* name : {"x", "y", "z"}) {
    circle.push_back(add_device(topology, name, DeviceKind::node));
  }
  for (std::size_t i = 0; i < circle.size(); ++i) {
    connect(topology, circle[i], circle[(i + 1) % circle.size()], 1, 1000);
  }
  const std::vector<int> first = first_of_rows(topology);
  EXPECT_EQ(std::vector<int>(first.begin(), first.begin() + 6),
            (std::vector<int>{0, 5, 0, 5, 0, 5}));
}

// Checks the simulator's assumption: a path that uses one link of a row uses all of them.
class Rows : public testing::TestWithParam<std::string> {};

TEST_P(Rows, EveryRouteTakesAllOfARowOrNothingOfIt) {
  const Topology topology = *make_preset(GetParam()).value;
  const std::vector<int> first = first_of_rows(topology);
  std::map<int, std::set<int>> rows;
  for (std::size_t i = 0; i < first.size(); ++i) {
    rows[first[i]].insert(static_cast<int>(i));
  }
  for (const RouteChoice choice : {RouteChoice::fixed, RouteChoice::adaptive}) {
    Router router(topology, choice);
    for (int from = 0; from < topology.rank_count(); ++from) {
      for (int to = 0; to < topology.rank_count(); ++to) {
        const std::vector<int>& route = router.route(from, to);
        const std::set<int> links(route.begin(), route.end());
        for (const int link : links) {
          const std::set<int>& row = rows[first[at(link)]];
          ASSERT_TRUE(std::includes(links.begin(), links.end(), row.begin(), row.end()))
              << topology.devices[at(topology.links[at(link)].from)].name << "->"
              << topology.devices[at(topology.links[at(link)].to)].name;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, Rows,
                         testing::Values("dgx_h100:nodes=4", "dgx_a100:nodes=2",
                                         "rail_optimised:nodes=40", "fat_tree:hosts=40,ports=8",
                                         "dragonfly", "torus:x=3,y=4,z=2"));

}  // namespace
}  // namespace unisono::network_model
