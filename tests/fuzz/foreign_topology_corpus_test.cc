// Runs topologies of other programs, whole, cut anywhere and with single bytes changed, and
// compares the result with the machines that they describe. The folder is an argument.
#include <gtest/gtest.h>

#include <algorithm>

#include "corpus.h"
#include "foreign_topology_property.h"
#include "topology/routes.h"

namespace unisono {
namespace {

Parsed<Topology> read(const fuzz::CorpusFile& file) {
  return file.name.ends_with(".xml")                   ? cli::read_nccl_topology(file.text)
         : file.name.find("rocm") != std::string::npos ? cli::read_rocm_topology(file.text)
                                                       : cli::read_smi_matrix(file.text);
}

Topology good(const std::string& name) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    if (file.name == name) {
      Parsed<Topology> parsed = read(file);
      EXPECT_TRUE(parsed) << parsed.message;
      return parsed ? std::move(*parsed.value) : Topology{};
    }
  }
  ADD_FAILURE() << "no seed " << name;
  return {};
}

// Returns the GB/s of the narrowest link between two ranks.
double rate(const Topology& topology, int from, int to) {
  Router router(topology);
  double narrowest = 1e9;
  for (const int link : router.route(from, to)) {
    narrowest = std::min(narrowest, topology.links[static_cast<std::size_t>(link)].bytes_per_us);
  }
  return narrowest / 1e3;
}

TEST(ForeignTopologies, GoodIsTakenAndBadRefused) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::foreign_topology_property(file.text), "");
    const Parsed<Topology> parsed = read(file);
    EXPECT_EQ(static_cast<bool>(parsed), file.name.starts_with("good_")) << parsed.message;
    EXPECT_TRUE(!parsed || !check(*parsed.value));
    if (file.name.ends_with(".xml") && parsed) {
      EXPECT_TRUE(cli::is_nccl_topology(file.text));
      EXPECT_FALSE(cli::is_smi_matrix(file.text));
    } else if (parsed) {
      EXPECT_NE(cli::is_smi_matrix(file.text), cli::is_rocm_topology(file.text));
    }
  }
}

TEST(ForeignTopologies, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::foreign_topology_property);
  }
}

// 18 NVLinks of 25 GB/s to a switch; the fourth GPU is on the other socket.
TEST(ForeignTopologies, ASwitchIsNotALinkToEach) {
  const Topology topology = good("good_switch.txt");
  ASSERT_EQ(topology.rank_count(), 4);
  EXPECT_EQ(rate(topology, 0, 1), 450);
  EXPECT_EQ(rate(topology, 1, 2), 450);
  EXPECT_EQ(rate(topology, 0, 3), 31.5);
  EXPECT_NE(topology.source.find("25 GB/s each way of an NVLink"), std::string::npos);
}

TEST(ForeignTopologies, LinksOfTwoGpusAreTheirOwn) {
  const Topology topology = good("good_dgx1.txt");
  ASSERT_EQ(topology.rank_count(), 4);
  EXPECT_EQ(rate(topology, 0, 1), 50);
  EXPECT_EQ(rate(topology, 0, 2), 25);
  EXPECT_EQ(rate(topology, 0, 3), 31.5);
  const auto nics = std::count_if(topology.devices.begin(), topology.devices.end(),
                                  [](const Device& one) { return one.kind == DeviceKind::nic; });
  EXPECT_EQ(nics, 2);
}

// PCIe 4.0 x16 above a 5.0 x16 link; the third GPU shares its CPU with the second.
TEST(ForeignTopologies, SlotsHaveTheSpeedOfTheFile) {
  const Topology topology = good("good_pcie.xml");
  ASSERT_EQ(topology.rank_count(), 3);
  EXPECT_NEAR(rate(topology, 0, 1), 16.0 * 16 * 128 / 130 / 8, 0.01);
  Router router(topology);
  EXPECT_EQ(router.route(0, 1).size(), 5U);
  EXPECT_EQ(router.route(1, 2).size(), 4U);
}

TEST(ForeignTopologies, RanksAreThoseOfTheFile) {
  const Topology topology = good("good_nvswitch.xml");
  ASSERT_EQ(topology.rank_count(), 2);
  EXPECT_EQ(topology.devices[static_cast<std::size_t>(topology.ranks[0])].name, "gpu1");
  EXPECT_EQ(rate(topology, 0, 1), 450);
}

// One NVLink domain; both hosts have the same bus ids.
TEST(ForeignTopologies, HostsOfOneFileHaveTheirOwnGpus) {
  const Topology topology = good("good_two_hosts.xml");
  ASSERT_EQ(topology.rank_count(), 2);
  EXPECT_EQ(rate(topology, 0, 1), 900);
  EXPECT_EQ(std::ranges::count(topology.devices, DeviceKind::node, &Device::kind), 2);
  EXPECT_EQ(std::ranges::count(topology.devices, DeviceKind::gpu, &Device::kind), 2);
}

// After the command, with NICs of any name, and SYS in the spelling of old drivers.
TEST(ForeignTopologies, ReadsWhatIsPasted) {
  const Topology topology = good("good_pasted.txt");
  ASSERT_EQ(topology.rank_count(), 2);
  EXPECT_EQ(rate(topology, 0, 1), 31.5);
  const auto nics = std::ranges::count(topology.devices, DeviceKind::nic, &Device::kind);
  EXPECT_EQ(nics, 2);
}

TEST(ForeignTopologies, ReadsLinksOfRocm) {
  const Topology topology = good("good_rocm.txt");
  ASSERT_EQ(topology.rank_count(), 4);
  EXPECT_EQ(rate(topology, 0, 1), 50);
  EXPECT_EQ(rate(topology, 0, 2), 31.5);
  Router router(topology);
  EXPECT_EQ(router.route(0, 1).size(), 1U);
  EXPECT_EQ(router.route(0, 2).size(), 3U);
}

TEST(ForeignTopologies, RefusesEntities) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    if (file.name == "bad_entities.xml") {
      const Parsed<Topology> parsed = read(file);
      EXPECT_NE(parsed.message.find("document type"), std::string::npos) << parsed.message;
      return;
    }
  }
  FAIL() << "no seed";
}

}  // namespace
}  // namespace unisono
