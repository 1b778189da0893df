// The presets, which presets_machines.cc and presets_fabrics.cc define, and the node that both use.
#pragma once

#include <string>
#include <vector>

#include "topology/preset.h"

namespace unisono::machines {

extern const Preset dgx_a100;
extern const Preset dgx_h100;
extern const Preset hgx_h200;
extern const Preset gb200_nvl72;
extern const Preset dgx_a100_40gb;
extern const Preset hgx_h800;
extern const Preset hgx_h20;
extern const Preset hgx_b200;
extern const Preset hgx_b300;
extern const Preset gb300_nvl72;
extern const Preset gh200_nvl32;
extern const Preset mi300x_platform;
extern const Preset mi355x_platform;
extern const Preset l40s_server;
extern const Preset tpu_v5p;
extern const Preset tpu_v6e;
extern const Preset pcie_server;
extern const Preset ethernet_cluster;
extern const Preset fat_tree;
extern const Preset rail_optimised;
extern const Preset dragonfly;
extern const Preset torus;

inline constexpr double gb_per_s(double value) {
  return value * 1e3;
}
inline constexpr double gbit_per_s(double value) {
  return value * 125;
}

// A node whose GPUs are connected to one NVSwitch plane, with a NIC beside each GPU.
struct GpuNode {
  int gpus = 8;
  double nvlink_bytes_per_us = 0;
  double pcie_bytes_per_us = 0;
  double latency = 1;  // argument of gpu_protocols()
  double reduces = 0;  // Device::reduces of its switch
};

// Returns the costs of NCCL on GPUs of one generation. LL sends flags with the data; Simple fills
// the links but starts late. The costs are fitted by least absolute errors to the tables of
// ai-dynamo/aiconfigurator (Apache-2.0, 2026; 2 and 4 GPUs, all sizes) and to the tables that
// tests/data/nccl lists.
std::vector<Protocol> gpu_protocols(double latency);
inline constexpr double kA100Latency = 1.22;
inline constexpr double kH100Latency = 0.73;
inline constexpr double kB200Latency = 1.08;
// The share of NVLink's bandwidth that a reduction in the switch reaches (NVLink SHARP, from the
// third NVSwitch generation on): nvlsEfficiency in NCCL's tuning.
inline constexpr double kHopperReduces = 0.85;
inline constexpr double kBlackwellReduces = 0.74;
// From GPU to GPU: 0.6 us over NVLink; over the network 2.7 us with one switch, including 1.0 us on
// the PCIe of each side. NCCL assumes these latencies (ring, LL) in src/graph/tuning.cc.
inline constexpr double kNvlinkLatencyUs = 0.3;
inline constexpr double kPcieLatencyUs = 1.0;
inline constexpr double kNicLatencyUs = 0.35;
// The latency of another switch on the path: NVIDIA Quantum-2 forwards a packet in less than 0.15
// us.
inline constexpr double kSwitchLatencyUs = 0.15;

// Adds the node and its ranks; returns its NICs in the order of its GPUs.
std::vector<int> add_gpu_node(Topology& topology, const std::string& name, const GpuNode& node);

inline constexpr GpuNode kH100Node = {.gpus = 8,
                                      .nvlink_bytes_per_us = gb_per_s(328),
                                      .pcie_bytes_per_us = gb_per_s(63),
                                      .latency = kH100Latency,
                                      .reduces = kHopperReduces};

}  // namespace unisono::machines
