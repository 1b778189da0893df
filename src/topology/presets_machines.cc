// Presets of machines: GPU nodes and servers.
#include <algorithm>
#include <array>

#include "topology/preset_list.h"

namespace unisono::machines {

std::vector<int> add_gpu_node(Topology& topology, const std::string& name, const GpuNode& node) {
  const int box = add_device(topology, name, DeviceKind::node);
  const int nvswitch = add_device(topology, name + ".nvswitch", DeviceKind::network_switch, box);
  topology.devices.back().reduces = node.reduces;
  std::vector<int> nics;
  for (int i = 0; i < node.gpus; ++i) {
    const std::string number = std::to_string(i);
    const int gpu = add_device(topology, name + ".gpu" + number, DeviceKind::gpu, box);
    nics.push_back(add_device(topology, name + ".nic" + number, DeviceKind::nic, box));
    connect(topology, gpu, nvswitch, kNvlinkLatencyUs, node.nvlink_bytes_per_us);
    connect(topology, gpu, nics.back(), kPcieLatencyUs, node.pcie_bytes_per_us);
    topology.ranks.push_back(gpu);
  }
  return nics;
}

std::vector<Protocol> gpu_protocols(double latency) {
  // A message's time minus the times that the topology already counts for its links.
  const auto message = [&](double us) {
    return std::max(0.0, latency * us - 2 * kNvlinkLatencyUs);
  };
  return {{.name = "LL", .start_us = latency * 7.85, .message_us = message(0.99), .share = 0.38},
          {.name = "Simple", .start_us = latency * 26.5, .message_us = message(1.22), .share = 1}};
}

namespace {

std::string numbered(const char* name, std::int64_t number) {
  return name + std::to_string(number);
}

// Adds one switch per rail, which joins the NICs of equal number, and one switch that joins the
// rails without limiting their bandwidth.
std::vector<int> add_rails(Topology& topology, int rails, std::int64_t nodes,
                           double nic_bytes_per_us) {
  std::vector<int> result;
  if (nodes > 1) {
    const int spine = add_device(topology, "spine", DeviceKind::network_switch);
    for (int rail = 0; rail < rails; ++rail) {
      result.push_back(add_device(topology, numbered("rail", rail), DeviceKind::network_switch));
      connect(topology, result.back(), spine, kSwitchLatencyUs,
              static_cast<double>(nodes) * nic_bytes_per_us);
    }
  }
  return result;
}

Topology nodes_on_rails(std::int64_t nodes, const GpuNode& node, double nic_bytes_per_us) {
  Topology topology;
  topology.protocols = gpu_protocols(node.latency);
  const std::vector<int> rails = add_rails(topology, node.gpus, nodes, nic_bytes_per_us);
  for (std::int64_t i = 0; i < nodes; ++i) {
    const std::vector<int> nics = add_gpu_node(topology, numbered("node", i), node);
    for (std::size_t rail = 0; rail < rails.size(); ++rail) {
      connect(topology, nics[rail], rails[rail], kNicLatencyUs, nic_bytes_per_us);
    }
  }
  return topology;
}

// If a rail has more nodes than one switch has ports, the switch represents the rail's fat tree,
// which does not limit the bandwidth either; rail_optimised builds such a tree.
constexpr std::array<PresetParameter, 1> kNodes = {
    {{.name = "nodes", .most = 4096, .help = "nodes, joined by one switch per rail"}}};
constexpr std::array<PresetParameter, 1> kServers = {
    {{.name = "nodes", .most = 4096, .help = "nodes on one switch"}}};

std::int64_t eight_each(std::span<const std::int64_t> values) {
  return 8 * values[0];
}

constexpr GpuNode kA100Node = {.gpus = 8,
                               .nvlink_bytes_per_us = gb_per_s(200),
                               .pcie_bytes_per_us = gb_per_s(31.5),
                               .latency = kA100Latency};
constexpr GpuNode kH800Node = {.gpus = 8,
                               .nvlink_bytes_per_us = gb_per_s(146),
                               .pcie_bytes_per_us = gb_per_s(63),
                               .latency = kH100Latency,
                               .reduces = kHopperReduces};
constexpr GpuNode kB200Node = {.gpus = 8,
                               .nvlink_bytes_per_us = gb_per_s(592),
                               .pcie_bytes_per_us = gb_per_s(63),
                               .latency = kB200Latency,
                               .reduces = kBlackwellReduces};
constexpr GpuNode kB300Node = {.gpus = 8,
                               .nvlink_bytes_per_us = gb_per_s(592),
                               .pcie_bytes_per_us = gb_per_s(126),
                               .latency = kB200Latency,
                               .reduces = kBlackwellReduces};
constexpr GpuNode kMi300xNode = {.gpus = 8,
                                 .nvlink_bytes_per_us = gb_per_s(328),
                                 .pcie_bytes_per_us = gb_per_s(63),
                                 .latency = kA100Latency};
constexpr GpuNode kMi355xNode = {.gpus = 8,
                                 .nvlink_bytes_per_us = gb_per_s(392),
                                 .pcie_bytes_per_us = gb_per_s(63),
                                 .latency = kA100Latency};

template <const GpuNode& kNode, int kNicGbit>
Topology build_nodes(std::span<const std::int64_t> values) {
  return nodes_on_rails(values[0], kNode, gbit_per_s(kNicGbit));
}

// Racks of trays with 4 GPUs each; all GPUs of a rack are in one NVLink domain. A rail joins the
// GPUs with the same number in their trays.
struct Rack {
  int trays = 18;
  double nvlink_gb_per_s = 592;
  double pcie_gb_per_s = 63;
  double nic_gbit_per_s = 400;
  double latency = kB200Latency;
  double reduces = kBlackwellReduces;
};
constexpr Rack kGb200 = {};
constexpr Rack kGb300 = {.pcie_gb_per_s = 126, .nic_gbit_per_s = 800};
constexpr Rack kGh200 = {
    .trays = 8, .nvlink_gb_per_s = 328, .latency = kH100Latency, .reduces = kHopperReduces};

constexpr std::array<PresetParameter, 1> kRacks = {
    {{.name = "racks", .most = 512, .help = "racks, joined by one switch per rail of 4"}}};

template <const Rack& kRack>
Topology build_racks(std::span<const std::int64_t> values) {
  constexpr int kGpus = 4;
  constexpr double kNic = gbit_per_s(kRack.nic_gbit_per_s);
  Topology topology;
  topology.protocols = gpu_protocols(kRack.latency);
  const std::vector<int> rails =
      add_rails(topology, kGpus, values[0] > 1 ? kRack.trays * values[0] : 1, kNic);
  for (std::int64_t r = 0; r < values[0]; ++r) {
    const std::string rack_name = numbered("rack", r);
    const int rack = add_device(topology, rack_name, DeviceKind::group);
    const int nvswitch =
        add_device(topology, rack_name + ".nvswitch", DeviceKind::network_switch, rack);
    topology.devices.back().reduces = kRack.reduces;
    for (int t = 0; t < kRack.trays; ++t) {
      const std::string name = rack_name + ".tray" + std::to_string(t);
      const int tray = add_device(topology, name, DeviceKind::node, rack);
      for (std::size_t g = 0; g < kGpus; ++g) {
        const int gpu =
            add_device(topology, name + ".gpu" + std::to_string(g), DeviceKind::gpu, tray);
        topology.ranks.push_back(gpu);
        connect(topology, gpu, nvswitch, kNvlinkLatencyUs, gb_per_s(kRack.nvlink_gb_per_s));
        if (!rails.empty()) {
          const int nic =
              add_device(topology, name + ".nic" + std::to_string(g), DeviceKind::nic, tray);
          connect(topology, gpu, nic, kPcieLatencyUs, gb_per_s(kRack.pcie_gb_per_s));
          connect(topology, nic, rails[g], kNicLatencyUs, kNic);
        }
      }
    }
  }
  return topology;
}

// A torus pod as one domain: collectives along the axes use the full bandwidth of a chip.
template <int kGbPerS>
Topology build_pod(std::span<const std::int64_t> values) {
  Topology topology;
  topology.overhead_us = 1;
  const int fabric = add_device(topology, "torus", DeviceKind::network_switch);
  for (std::int64_t i = 0; i < values[0]; ++i) {
    const int chip = add_device(topology, numbered("chip", i), DeviceKind::gpu);
    connect(topology, chip, fabric, kNvlinkLatencyUs, gb_per_s(kGbPerS));
    topology.ranks.push_back(chip);
  }
  return topology;
}

constexpr std::array<PresetParameter, 1> kV5pChips = {
    {{.name = "chips", .fallback = 8, .most = 8960, .help = "chips of one pod"}}};
constexpr std::array<PresetParameter, 1> kV6eChips = {
    {{.name = "chips", .fallback = 8, .most = 256, .help = "chips of one pod"}}};

// Two sockets, with four GPUs on a PCIe switch below each. The NIC is on socket 0.
Topology build_pcie_server(std::span<const std::int64_t> values) {
  Topology topology;
  const int fabric =
      values[0] > 1 ? add_device(topology, "switch", DeviceKind::network_switch) : -1;
  for (std::int64_t i = 0; i < values[0]; ++i) {
    const std::string name = numbered("node", i);
    const int node = add_device(topology, name, DeviceKind::node);
    std::array<int, 2> sockets{};
    for (std::size_t s = 0; s < sockets.size(); ++s) {
      const std::string number = std::to_string(s);
      sockets[s] = add_device(topology, name + ".socket" + number, DeviceKind::socket, node);
      const int bridge =
          add_device(topology, name + ".pcie" + number, DeviceKind::network_switch, node);
      connect(topology, sockets[s], bridge, kPcieLatencyUs / 2, gb_per_s(31.5));
      for (int g = 0; g < 4; ++g) {
        const int gpu =
            add_device(topology, name + ".gpu" + std::to_string(4 * static_cast<int>(s) + g),
                       DeviceKind::gpu, node);
        connect(topology, gpu, bridge, kPcieLatencyUs / 2, gb_per_s(31.5));
        topology.ranks.push_back(gpu);
      }
    }
    connect(topology, sockets[0], sockets[1], 0.1, gb_per_s(67.2));
    if (fabric >= 0) {
      const int nic = add_device(topology, name + ".nic", DeviceKind::nic, node);
      connect(topology, sockets[0], nic, kPcieLatencyUs / 2, gb_per_s(31.5));
      connect(topology, nic, fabric, kNicLatencyUs, gbit_per_s(100));
    }
  }
  return topology;
}

constexpr std::array<PresetParameter, 2> kEthernet = {
    {{.name = "hosts", .fallback = 8, .most = 1024, .help = "hosts on one switch, one rank each"},
     {.name = "gbit_per_s", .fallback = 25, .most = 800, .help = "of a port, each way"}}};

Topology build_ethernet(std::span<const std::int64_t> values) {
  Topology topology;
  topology.overhead_us = 10;
  const int fabric = add_device(topology, "switch", DeviceKind::network_switch);
  for (std::int64_t i = 0; i < values[0]; ++i) {
    const int host = add_device(topology, numbered("host", i), DeviceKind::node);
    connect(topology, host, fabric, kSwitchLatencyUs, gbit_per_s(static_cast<double>(values[1])));
    topology.ranks.push_back(host);
  }
  return topology;
}

}  // namespace

extern constinit const Preset dgx_a100{
    .name = "dgx_a100",
    .summary = "8 A100 on NVSwitch, a 200 Gbit/s NIC each",
    .source =
        "NVIDIA DGX A100 System Architecture white paper: NVLink 3, 600 GB/s per GPU, both "
        "ways together, hence 300 each way, of which NCCL reaches 200; 8 ConnectX-6 of 200 Gbit/s; "
        "PCIe 4.0 x16: 31.5 "
        "GB/s each way. Latencies: NCCL src/graph/tuning.cc. "
        "Start times and bandwidths of NCCL: ai-dynamo/aiconfigurator, 2026",
    .parameters = kNodes,
    .build = build_nodes<kA100Node, 200>,
    .ranks = eight_each};

extern constinit const Preset dgx_h100{
    .name = "dgx_h100",
    .summary = "8 H100 on NVSwitch, a 400 Gbit/s NIC each",
    .source =
        "NVIDIA DGX H100/H200 User Guide: NVLink 4, 900 GB/s per GPU, both ways together, "
        "hence 450 each way, of which NCCL reaches 328; 8 ConnectX-7 of 400 Gbit/s; PCIe 5.0 x16: "
        "63 GB/s each way. "
        "Latencies, and the bandwidth of reductions in the switch: NCCL src/graph/tuning.cc. "
        "Start times and bandwidths of NCCL: ai-dynamo/aiconfigurator, 2026",
    .parameters = kNodes,
    .build = build_nodes<kH100Node, 400>,
    .ranks = eight_each};

extern constinit const Preset hgx_h200{
    .name = "hgx_h200",
    .summary = "8 H200 on NVSwitch, a 400 Gbit/s NIC each",
    .source =
        "NVIDIA H200 data sheet: NVLink 4, 900 GB/s per GPU, both ways together, hence 450 "
        "each way, of which NCCL reaches 328; PCIe 5.0 x16: 63 GB/s each way; NIC as in DGX H200: "
        "ConnectX-7 of 400 "
        "Gbit/s. Latencies, and the bandwidth of reductions in the switch: NCCL "
        "src/graph/tuning.cc. "
        "Start times and bandwidths of NCCL: ai-dynamo/aiconfigurator, 2026",
    .parameters = kNodes,
    .build = build_nodes<kH100Node, 400>,
    .ranks = eight_each};

extern constinit const Preset gb200_nvl72{
    .name = "gb200_nvl72",
    .summary = "racks of 72 B200 on one NVLink domain, a 400 Gbit/s NIC each",
    .source =
        "NVIDIA GB200 NVL72 data sheet: 18 trays of 4 GPUs; NVLink 5, 1.8 TB/s per GPU, both "
        "ways together, hence 900 GB/s each way, of which NCCL reaches 592; ConnectX-7 of 400 "
        "Gbit/s. Latencies, and the bandwidth of reductions in the switch: NCCL "
        "src/graph/tuning.cc. Start times and bandwidths of NCCL: ai-dynamo/aiconfigurator, 2026",
    .parameters = kRacks,
    .build = build_racks<kGb200>,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return 72 * values[0]; }};

extern constinit const Preset dgx_a100_40gb{
    .name = "dgx_a100_40gb",
    .summary = "8 A100 of 40 GB on NVSwitch, a 200 Gbit/s NIC each",
    .source = "NVIDIA A100 data sheet: as dgx_a100, with 40 GB of memory",
    .parameters = kNodes,
    .build = build_nodes<kA100Node, 200>,
    .ranks = eight_each};

extern constinit const Preset hgx_h800{
    .name = "hgx_h800",
    .summary = "8 H800 on NVSwitch, a 400 Gbit/s NIC each",
    .source =
        "As dgx_h100, with NVLink of 400 GB/s per GPU, both ways together (DeepSeek-V3 technical "
        "report, 2024), of which collectives reach the same part",
    .parameters = kNodes,
    .build = build_nodes<kH800Node, 400>,
    .ranks = eight_each};

extern constinit const Preset hgx_h20{.name = "hgx_h20",
                                      .summary = "8 H20 on NVSwitch, a 400 Gbit/s NIC each",
                                      .source = "As dgx_h100: the H20 has the NVLink of the H100",
                                      .parameters = kNodes,
                                      .build = build_nodes<kH100Node, 400>,
                                      .ranks = eight_each};

extern constinit const Preset hgx_b200{
    .name = "hgx_b200",
    .summary = "8 B200 on NVSwitch, a 400 Gbit/s NIC each",
    .source =
        "NVIDIA DGX B200 data sheet: NVLink 5, 1.8 TB/s per GPU, both ways together, hence 900 "
        "GB/s each way, of which NCCL reaches 592; 8 ConnectX-7 of 400 Gbit/s",
    .parameters = kNodes,
    .build = build_nodes<kB200Node, 400>,
    .ranks = eight_each};

extern constinit const Preset hgx_b300{
    .name = "hgx_b300",
    .summary = "8 B300 on NVSwitch, an 800 Gbit/s NIC each",
    .source = "NVIDIA DGX B300 data sheet: NVLink as DGX B200; 8 ConnectX-8 of 800 Gbit/s",
    .parameters = kNodes,
    .build = build_nodes<kB300Node, 800>,
    .ranks = eight_each};

extern constinit const Preset gb300_nvl72{
    .name = "gb300_nvl72",
    .summary = "racks of 72 B300 on one NVLink domain, an 800 Gbit/s NIC each",
    .source = "NVIDIA GB300 NVL72 data sheet: NVLink as GB200 NVL72; ConnectX-8 of 800 Gbit/s",
    .parameters = kRacks,
    .build = build_racks<kGb300>,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return 72 * values[0]; }};

extern constinit const Preset gh200_nvl32{
    .name = "gh200_nvl32",
    .summary = "racks of 32 GH200 on one NVLink domain, a 400 Gbit/s NIC each",
    .source = "NVIDIA GH200 NVL32: NVLink 4, as H100; trays of 4 and one NIC each are assumed",
    .parameters = kRacks,
    .build = build_racks<kGh200>,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return 32 * values[0]; }};

extern constinit const Preset mi300x_platform{
    .name = "mi300x_platform",
    .summary = "8 MI300X on Infinity Fabric, a 400 Gbit/s NIC each",
    .source =
        "AMD MI300X platform data sheet: 7 links of 64 GB/s each way to the others, of which the "
        "same part as of NVLink 4 is assumed to be reached; start times are assumed "
        "as on A100",
    .parameters = kNodes,
    .build = build_nodes<kMi300xNode, 400>,
    .ranks = eight_each};

extern constinit const Preset mi355x_platform{
    .name = "mi355x_platform",
    .summary = "8 MI355X on Infinity Fabric, a 400 Gbit/s NIC each",
    .source =
        "AMD MI355X platform data sheet: 7 links of 76.8 GB/s each way to the others; the rest as "
        "mi300x_platform",
    .parameters = kNodes,
    .build = build_nodes<kMi355xNode, 400>,
    .ranks = eight_each};

extern constinit const Preset l40s_server{
    .name = "l40s_server",
    .summary = "two sockets, 8 L40S on PCIe 4.0, one 100 Gbit/s NIC",
    .source = "NVIDIA L40S data sheet: PCIe 4.0 x16, no NVLink; the server as pcie_server",
    .parameters = kServers,
    .build = build_pcie_server,
    .ranks = eight_each};

extern constinit const Preset tpu_v5p{
    .name = "tpu_v5p",
    .summary = "chips of one TPU v5p pod",
    .source =
        "Google Cloud TPU v5p documentation: 1,200 GB/s of links per chip, both ways together; "
        "half "
        "of each way is assumed to be reached, at any distance",
    .parameters = kV5pChips,
    .build = build_pod<300>,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return values[0]; }};

extern constinit const Preset tpu_v6e{
    .name = "tpu_v6e",
    .summary = "chips of one TPU v6e pod",
    .source =
        "Google Cloud TPU v6e documentation: 800 GB/s of links per chip, both ways together; half "
        "of each way is assumed to be reached, at any distance",
    .parameters = kV6eChips,
    .build = build_pod<200>,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return values[0]; }};

extern constinit const Preset pcie_server{
    .name = "pcie_server",
    .summary = "two sockets, 8 GPUs on PCIe 4.0, one 100 Gbit/s NIC",
    .source =
        "PCI-SIG: PCIe 4.0 x16, 16 GT/s with 128b/130b coding: 31.5 GB/s each way. Intel Xeon "
        "Ice Lake: 3 UPI links of 11.2 GT/s, 22.4 GB/s each way each. Latencies: NCCL "
        "src/graph/tuning.cc; between sockets 0.1 us is assumed",
    .parameters = kServers,
    .build = build_pcie_server,
    .ranks = eight_each};

extern constinit const Preset ethernet_cluster{
    .name = "ethernet_cluster",
    .summary = "hosts on one Ethernet switch, one rank each, over TCP",
    .source =
        "IEEE 802.3: a port carries its bit rate each way at once. TCP from application to "
        "application about 10 us: Larsen et al., Architectural Breakdown of End-to-End "
        "Latency in a TCP/IP Network, Int. J. Parallel Programming 37, 2009. A switch below "
        "0.3 us: NVIDIA Spectrum SN2000 data sheet",
    .parameters = kEthernet,
    .build = build_ethernet,
    .ranks = [](std::span<const std::int64_t> values) -> std::int64_t { return values[0]; }};

}  // namespace unisono::machines
