#include "topology/presets.h"
#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "topology/json.h"
#include "topology/routes.h"

namespace unisono {
namespace {

Topology make(const std::string& text) {
  Parsed<Topology> made = make_preset(text);
  EXPECT_TRUE(made) << text << ": " << made.message;
  return made ? std::move(*made.value) : Topology{};
}

double narrowest(const Topology& topology, const std::vector<int>& route) {
  double width = 1e30;
  for (const int link : route) {
    width = std::min(width, topology.links[static_cast<std::size_t>(link)].bytes_per_us);
  }
  return width;
}

double latency(const Topology& topology, const std::vector<int>& route) {
  double sum = 0;
  for (const int link : route) {
    sum += topology.links[static_cast<std::size_t>(link)].latency_us;
  }
  return sum;
}

TEST(Presets, AllAreRightAndNameTheirSource) {
  for (const Preset* preset : presets()) {
    SCOPED_TRACE(preset->name);
    const Topology topology = make(std::string(preset->name));
    const auto found = check(topology);
    EXPECT_FALSE(found) << found->position << ": " << found->message;
    EXPECT_FALSE(topology.source.empty());
    std::vector<std::int64_t> values;
    for (const PresetParameter& parameter : preset->parameters) {
      values.push_back(parameter.fallback);
      EXPECT_LE(parameter.least, parameter.fallback);
      EXPECT_LE(parameter.fallback, parameter.most);
    }
    EXPECT_EQ(topology.rank_count(), preset->ranks(values));
  }
}

// A preset that was written out and read back has the same routes.
TEST(Presets, AreTheSameAsTheirExplicitForm) {
  for (const std::string name :
       {"dgx_a100:nodes=2", "dgx_h100:nodes=3", "hgx_h200", "gb200_nvl72:racks=2",
        "pcie_server:nodes=2", "ethernet_cluster:hosts=5,gbit_per_s=100",
        "fat_tree:hosts=15,ports=4", "rail_optimised:nodes=40", "dragonfly", "torus:x=3,y=3,z=2"}) {
    SCOPED_TRACE(name);
    const Topology topology = make(name);
    const Parsed<Topology> read = parse_topology_json(to_json(topology));
    ASSERT_TRUE(read) << read.position << ": " << read.message;
    Router router(topology);
    Router other(*read.value);
    for (int to = 1; to < topology.rank_count(); to += 3) {
      EXPECT_EQ(router.route(0, to), other.route(0, to));
    }
  }
}

TEST(Presets, HaveThePublishedBandwidthsOfOneDirection) {
  struct Case {
    std::string preset;
    int to;
    double gb_per_s;
    double latency_us;
  };
  const Case cases[] = {{"dgx_a100:nodes=2", 7, 200, 0.6},
                        {"dgx_a100:nodes=2", 8, 25, 2.7},
                        {"dgx_h100:nodes=2", 7, 328, 0.6},
                        {"dgx_h100:nodes=2", 8, 50, 2.7},
                        {"hgx_h200", 1, 328, 0.6},
                        {"gb200_nvl72:racks=2", 71, 592, 0.6},
                        {"gb200_nvl72:racks=2", 72, 50, 2.7},
                        {"pcie_server", 3, 31.5, 1.0},
                        {"pcie_server", 4, 31.5, 2.1},
                        {"pcie_server:nodes=2", 8, 12.5, 3.7},
                        {"ethernet_cluster", 7, 3.125, 0.3},
                        {"rail_optimised:nodes=32", 8, 50, 2.7},
                        {"rail_optimised:nodes=33", 256, 50, 3.0},
                        {"rail_optimised:nodes=320", 9 * 256, 50, 3.0},
                        {"torus", 1, 50, 0.5},
                        {"torus", 21, 50, 1.5},
                        {"fat_tree:hosts=4096", 1, 50, 2.7},
                        {"fat_tree:hosts=4096", 32, 50, 3.0},
                        {"fat_tree:hosts=4096", 1024, 50, 3.3},
                        {"dragonfly", 1, 25, 2.0},
                        {"dragonfly", 2, 25, 2.35}};
  for (const Case& wanted : cases) {
    SCOPED_TRACE(wanted.preset + " 0 to " + std::to_string(wanted.to));
    const Topology topology = make(wanted.preset);
    Router router(topology);
    const std::vector<int> route = router.route(0, wanted.to);
    EXPECT_NEAR(narrowest(topology, route), wanted.gb_per_s * 1e3, 1e-6);
    EXPECT_NEAR(latency(topology, route), wanted.latency_us, 1e-9);
  }
}

// The tiers have the widths of the reference architecture: 64 units have 512 leaves and spines.
TEST(Presets, RailOptimisedHasTheSwitchesOfTheReference) {
  const auto count = [](const Topology& topology, const std::string& prefix) {
    int found = 0;
    for (const Device& device : topology.devices) {
      found += device.name.starts_with(prefix) ? 1 : 0;
    }
    return found;
  };
  const Topology small = make("rail_optimised:nodes=256");
  EXPECT_EQ(count(small, "leaf"), 64);
  EXPECT_EQ(count(small, "spine"), 32);
  const Topology large = make("rail_optimised:nodes=2048");
  EXPECT_EQ(large.rank_count(), 16384);
  EXPECT_EQ(count(large, "leaf"), 512);
  EXPECT_EQ(count(large, "spine"), 512);
}

TEST(Presets, SaysWhatIsWrongWithParameters) {
  EXPECT_EQ(make_preset("torus:w=2").message,
            "\"w\" is not a parameter of torus, which has x, y, z");
  EXPECT_EQ(make_preset("torus:x=0").message, "x=0 is not in 1..1024");
  EXPECT_EQ(make_preset("torus:x").message, "\"x\" is not NAME=NUMBER, such as \"nodes=4\"");
  EXPECT_EQ(make_preset("torus:x=99999999999999999999").message,
            "\"x=99999999999999999999\" is not NAME=NUMBER, such as \"nodes=4\"");
  EXPECT_EQ(make_preset("torus:x=2,x=3").message, "\"x\" comes twice");
  EXPECT_EQ(make_preset("fat_tree:ports=5").message,
            "ports=5 is odd, but half of the ports lead up");
  EXPECT_TRUE(make_preset("fat_tree:hosts=128,ports=8"));
  EXPECT_EQ(make_preset("fat_tree:hosts=129,ports=8").message,
            "switches of 8 ports make a tree of at most 128 hosts, not 129");
  EXPECT_EQ(make_preset("rail_optimized").message,
            "there is no preset \"rail_optimized\", did you mean \"rail_optimised\"?");
}

}  // namespace
}  // namespace unisono
