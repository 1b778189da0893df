// Presets of fabrics, parametrised by their size: fat tree, rail-optimised, dragonfly, torus.
#include <algorithm>
#include <array>

#include "topology/preset_list.h"

namespace unisono::machines {
namespace {

std::string join(const char* name, std::int64_t a) {
  return name + std::to_string(a);
}
std::string join(const char* name, std::int64_t a, std::int64_t b) {
  return join(name, a) + "." + std::to_string(b);
}

// --- fat tree

constexpr std::array<PresetParameter, 3> kFatTree = {
    {{.name = "hosts", .fallback = 128, .most = kMostTopologyRanks, .help = "hosts, one rank each"},
     {.name = "ports", .fallback = 64, .least = 4, .most = 128, .help = "of a switch; even"},
     {.name = "gbit_per_s", .fallback = 400, .most = 1600, .help = "of a port, each way"}}};

std::string fat_tree_objection(std::span<const std::int64_t> values) {
  const std::int64_t hosts = values[0];
  const std::int64_t ports = values[1];
  if (ports % 2 != 0) {
    return "ports=" + std::to_string(ports) + " is odd, but half of the ports lead up";
  }
  // There are as many pods as a core switch has ports, each with ports/2 leaves of ports/2 hosts.
  const std::int64_t most = ports * ports * ports / 4;
  return hosts <= most ? ""
                       : "switches of " + std::to_string(ports) + " ports make a tree of at most " +
                             std::to_string(most) + " hosts, not " + std::to_string(hosts);
}

// Builds pods of ports/2 leaf and ports/2 upper switches, with core switches above. Fills leaves
// and pods in order, and builds only what the hosts need, with all uplinks.
Topology build_fat_tree(std::span<const std::int64_t> values) {
  const std::int64_t hosts = values[0];
  const std::int64_t half = values[1] / 2;
  const double bytes_per_us = gbit_per_s(static_cast<double>(values[2]));
  Topology topology;
  const std::int64_t leaves = (hosts + half - 1) / half;
  const std::int64_t pods = (leaves + half - 1) / half;
  std::vector<int> cores;
  for (std::int64_t i = 0; i < half * half && pods > 1; ++i) {
    cores.push_back(add_device(topology, join("core", i), DeviceKind::network_switch));
  }
  std::int64_t host = 0;
  for (std::int64_t pod = 0; pod < pods; ++pod) {
    const std::int64_t pod_leaves = std::min(half, leaves - pod * half);
    std::vector<int> uppers;
    for (std::int64_t u = 0; u < half && leaves > 1; ++u) {
      uppers.push_back(add_device(topology, join("upper", pod, u), DeviceKind::network_switch));
      for (std::int64_t c = 0; c < half && pods > 1; ++c) {
        connect(topology, uppers.back(), cores[static_cast<std::size_t>(u * half + c)],
                kSwitchLatencyUs, bytes_per_us);
      }
    }
    for (std::int64_t l = 0; l < pod_leaves; ++l) {
      const int leaf = add_device(topology, join("leaf", pod, l), DeviceKind::network_switch);
      for (std::int64_t h = 0; h < half && host < hosts; ++h, ++host) {
        topology.ranks.push_back(add_device(topology, join("host", host), DeviceKind::node));
        connect(topology, topology.ranks.back(), leaf, kPcieLatencyUs + kNicLatencyUs,
                bytes_per_us);
      }
      for (const int upper : uppers) {
        connect(topology, leaf, upper, kSwitchLatencyUs, bytes_per_us);
      }
    }
  }
  return topology;
}

// --- rail-optimised

constexpr std::array<PresetParameter, 1> kRail = {
    {{.name = "nodes", .fallback = 32, .most = kMostTopologyRanks / 8, .help = "DGX H100"}}};

// Units of 32 nodes have one leaf switch per rail. Up to 8 units, 32 spine switches join all
// leaves. Beyond, up to 32 leaves of one rail and 32 spines form a pod, and 32 core switches per
// spine number join the pods; a core switch has as many ports as there are pods.
class RailFabric {
 public:
  static constexpr std::int64_t kRails = 8;
  static constexpr std::int64_t kNodesPerLeaf = 32;
  static constexpr std::int64_t kSpines = 32;
  static constexpr std::int64_t kLeavesPerPod = 32;
  static constexpr std::int64_t kUnitsOnSpines = 8;

  explicit RailFabric(std::int64_t nodes) : units_((nodes + kNodesPerLeaf - 1) / kNodesPerLeaf) {
    if (units_ > kUnitsOnSpines) {
      add_pods();
    } else if (units_ > 1 || nodes > 1) {
      add_tier();
    }
    topology_.protocols = gpu_protocols(kH100Latency);
    // A node has its box and its NVSwitch, and per rail a GPU and a NIC with three links.
    const auto all = static_cast<std::size_t>(nodes);
    topology_.devices.reserve(topology_.devices.size() + all * (2 + 2 * kRails));
    topology_.links.reserve(topology_.links.size() + all * (2 * 3 * kRails));
    topology_.ranks.reserve(all * kRails);
    for (std::int64_t node = 0; node < nodes; ++node) {
      const std::vector<int> nics = add_gpu_node(topology_, join("n", node), kH100Node);
      for (std::size_t rail = 0; rail < nics.size() && !leaves_.empty(); ++rail) {
        const auto unit = static_cast<std::size_t>(node / kNodesPerLeaf);
        connect(topology_, nics[rail], leaves_[unit * kRails + rail], kNicLatencyUs, kRate);
      }
    }
  }

  Topology take() { return std::move(topology_); }

 private:
  static constexpr double kRate = gbit_per_s(400);

  int add_switch(std::string name) {
    return add_device(topology_, std::move(name), DeviceKind::network_switch);
  }

  void add_leaves() {
    for (std::int64_t unit = 0; unit < units_; ++unit) {
      for (std::int64_t rail = 0; rail < kRails; ++rail) {
        leaves_.push_back(add_switch(join("leaf", unit, rail)));
      }
    }
  }

  void add_tier() {
    add_leaves();
    for (std::int64_t i = 0; i < kSpines; ++i) {
      const int spine = add_switch(join("spine", i));
      for (const int leaf : leaves_) {
        connect(topology_, leaf, spine, kSwitchLatencyUs, kRate);
      }
    }
  }

  void add_pods() {
    add_leaves();
    std::vector<int> cores;
    for (std::int64_t i = 0; i < kSpines * kSpines; ++i) {
      cores.push_back(add_switch(join("core", i)));
    }
    const std::int64_t pods = (units_ + kLeavesPerPod - 1) / kLeavesPerPod;
    for (std::int64_t pod = 0; pod < pods * kRails; ++pod) {
      const std::int64_t rail = pod % kRails;
      const std::int64_t first = pod / kRails * kLeavesPerPod;
      for (std::int64_t i = 0; i < kSpines; ++i) {
        const int spine = add_switch(join("spine", pod, i));
        for (std::int64_t unit = first; unit < std::min(units_, first + kLeavesPerPod); ++unit) {
          connect(topology_, leaves_[static_cast<std::size_t>(unit * kRails + rail)], spine,
                  kSwitchLatencyUs, kRate);
        }
        for (std::int64_t c = 0; c < kSpines; ++c) {
          connect(topology_, spine, cores[static_cast<std::size_t>(i * kSpines + c)],
                  kSwitchLatencyUs, kRate);
        }
      }
    }
  }

  std::int64_t units_;
  Topology topology_;
  std::vector<int> leaves_;  // by unit, then rail
};

// --- dragonfly

constexpr std::array<PresetParameter, 3> kDragonfly = {
    {{.name = "groups", .fallback = 9, .most = 512, .help = "joined by one link per pair"},
     {.name = "switches",
      .fallback = 4,
      .most = 64,
      .help = "of a group, joined by one link per pair"},
     {.name = "hosts", .fallback = 2, .most = 64, .help = "per switch, one rank each"}}};

Topology build_dragonfly(std::span<const std::int64_t> values) {
  constexpr double kLatencyUs = 0.35;
  const double rate = gbit_per_s(200);
  const std::int64_t groups = values[0];
  const std::int64_t switches = values[1];
  Topology topology;
  std::vector<int> all;
  for (std::int64_t g = 0; g < groups; ++g) {
    const int group = add_device(topology, join("group", g), DeviceKind::group);
    for (std::int64_t s = 0; s < switches; ++s) {
      all.push_back(add_device(topology, join("switch", g, s), DeviceKind::network_switch, group));
      for (std::int64_t h = 0; h < values[2]; ++h) {
        const int host =
            add_device(topology, join("host", static_cast<std::int64_t>(topology.ranks.size())),
                       DeviceKind::node, group);
        topology.ranks.push_back(host);
        connect(topology, host, all.back(), kPcieLatencyUs, rate);
      }
      for (std::int64_t other = 0; other < s; ++other) {
        connect(topology, all.back(), all[static_cast<std::size_t>(g * switches + other)],
                kLatencyUs, rate);
      }
    }
  }
  // The links to the other groups go round-robin over the switches of a group.
  for (std::int64_t a = 0; a < groups; ++a) {
    for (std::int64_t b = a + 1; b < groups; ++b) {
      connect(topology, all[static_cast<std::size_t>(a * switches + (b - 1) % switches)],
              all[static_cast<std::size_t>(b * switches + a % switches)], kLatencyUs, rate);
    }
  }
  return topology;
}

// --- torus

constexpr std::array<PresetParameter, 3> kTorus = {
    {{.name = "x", .fallback = 4, .most = 1024, .help = "chips along the first axis"},
     {.name = "y", .fallback = 4, .most = 1024, .help = "along the second"},
     {.name = "z", .fallback = 4, .most = 1024, .help = "along the third"}}};

constexpr double kLinkLatencyUs = 0.5;

// Every chip has its own router, with a link to the next one along each axis, and around. Two chips
// along an axis have one link.
Topology build_torus(std::span<const std::int64_t> values) {
  const double rate = gb_per_s(50);
  const std::int64_t x = values[0];
  const std::int64_t y = values[1];
  const std::int64_t z = values[2];
  const std::int64_t chips = x * y * z;
  Topology topology;
  std::vector<int> routers;
  for (std::int64_t i = 0; i < chips; ++i) {
    routers.push_back(add_device(topology, join("router", i), DeviceKind::network_switch));
    topology.ranks.push_back(add_device(topology, join("chip", i), DeviceKind::gpu));
    connect(topology, topology.ranks.back(), routers.back(), 0, 6 * rate);
  }
  const auto join_axis = [&](std::int64_t stride, std::int64_t length) {
    for (std::int64_t i = 0; i < chips && length > 1; ++i) {
      const std::int64_t at = i / stride % length;
      if (at + 1 == length && length == 2) {
        continue;
      }
      const std::int64_t next = at + 1 == length ? i - at * stride : i + stride;
      connect(topology, routers[static_cast<std::size_t>(i)],
              routers[static_cast<std::size_t>(next)], kLinkLatencyUs, rate);
    }
  };
  join_axis(1, x);
  join_axis(x, y);
  join_axis(x * y, z);
  return topology;
}

}  // namespace

extern constinit const Preset fat_tree{
    .name = "fat_tree",
    .summary = "three tiers of equal switches, full bisection",
    .source =
        "Al-Fares, Loukissas, Vahdat, A Scalable, Commodity Data Center Network Architecture, "
        "SIGCOMM 2008. Ports: NVIDIA Quantum-2 QM9700, 64 of 400 Gbit/s each way, below 0.15 "
        "us. Latencies of the host: NCCL src/graph/tuning.cc",
    .parameters = kFatTree,
    .build = build_fat_tree,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return values[0]; },
    .objection = fat_tree_objection};

extern constinit const Preset rail_optimised{
    .name = "rail_optimised",
    .summary = "DGX H100 nodes, the GPUs of one number on one rail",
    .source =
        "NVIDIA DGX SuperPOD reference architecture: units of 32 nodes with 8 leaf switches, "
        "32 spines for 8 units, a core above. Nodes as dgx_h100. Switches: NVIDIA Quantum-2 "
        "QM9700, 400 Gbit/s each way, below 0.15 us",
    .parameters = kRail,
    .build = [](std::span<const std::int64_t> values) { return RailFabric(values[0]).take(); },
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return 8 * values[0]; }};

extern constinit const Preset dragonfly{
    .name = "dragonfly",
    .summary = "groups of switches, all pairs joined, in the group and between groups",
    .source =
        "Kim, Dally, Scott, Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA "
        "2008. Links: De Sensi et al., An In-Depth Analysis of the Slingshot Interconnect, "
        "SC 2020: 200 Gbit/s each way, 0.35 us a switch",
    .parameters = kDragonfly,
    .build = build_dragonfly,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t {
      return values[0] * values[1] * values[2];
    }};

extern constinit const Preset torus{
    .name = "torus",
    .summary = "chips in a three-dimensional torus",
    .source =
        "Jouppi et al., TPU v4: An Optically Reconfigurable Supercomputer for Machine "
        "Learning, ISCA 2023: 6 links of 50 GB/s each way a chip. The latency of a hop, 0.5 "
        "us, is assumed",
    .parameters = kTorus,
    .build = build_torus,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t {
      return values[0] * values[1] * values[2];
    }};

}  // namespace unisono::machines
