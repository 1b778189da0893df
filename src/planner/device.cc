#include "planner/device.h"

#include <algorithm>
#include <array>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/workload.h"
#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

// Peaks, memory and links come from the data sheets of NVIDIA, AMD and Google; rates are for dense
// matrices. Collectives reach a part of the links' bandwidth: 0.66 to 0.73 of NVLink and Infinity
// Fabric (measured on H100 and B200: ai-dynamo/aiconfigurator, 2026), 0.8 of PCIe 4.0, and half of
// the bandwidth in a torus, whose chips have neighbours in both directions. Host links count 0.8 of
// PCIe or NVLink-C2C. For TPUs, the multiprocessors are matrix units. Power is the power of the
// module; for GH200 it includes the processor.
const std::vector<DeviceModel>& devices() {
  const auto device = [](std::string name, double bf16, double f8, double f4, double memory,
                         double memory_rate, int multiprocessors, int domain, double near,
                         double far, double host, double watts) {
    return DeviceModel{.name = std::move(name),
                       .bf16_flops = bf16 * kTera,
                       .f8_flops = f8 * kTera,
                       .f4_flops = f4 * kTera,
                       .memory_bytes = memory * kGiga,
                       .memory_bytes_per_s = memory_rate * kGiga,
                       .multiprocessors = multiprocessors,
                       .domain = domain,
                       .near_bytes_per_s = near * kGiga,
                       .far_bytes_per_s = far * kGiga,
                       .host_bytes_per_s = host * kGiga,
                       .watts = watts};
  };
  static const std::vector<DeviceModel> kDevices = {
      device("a100", 312, 0, 0, 80, 2039, 108, 8, 200, 25, 25, 400),
      device("a100_40gb", 312, 0, 0, 40, 1555, 108, 8, 200, 25, 25, 400),
      device("h100", 989, 1979, 0, 80, 3350, 132, 8, 328, 50, 50, 700),
      device("h800", 989, 1979, 0, 80, 3350, 132, 8, 146, 50, 50, 700),
      device("h20", 148, 296, 0, 96, 4000, 78, 8, 328, 50, 50, 400),
      device("h200", 989, 1979, 0, 141, 4800, 132, 8, 328, 50, 50, 700),
      device("gh200", 989, 1979, 0, 96, 4000, 132, 32, 328, 50, 360, 1000),
      device("b200", 2250, 4500, 9000, 180, 8000, 148, 8, 592, 50, 50, 1000),
      device("b300", 2250, 4500, 13500, 288, 8000, 148, 8, 592, 100, 50, 0),
      device("gb200", 2500, 5000, 10000, 186, 8000, 152, 72, 592, 50, 360, 1200),
      device("gb300", 2500, 5000, 15000, 288, 8000, 152, 72, 592, 100, 360, 1400),
      device("l40s", 362, 733, 0, 48, 864, 142, 8, 25, 12.5, 25, 350),
      device("mi300x", 1307, 2615, 0, 192, 5300, 304, 8, 328, 50, 50, 750),
      device("mi325x", 1307, 2615, 0, 256, 6000, 304, 8, 328, 50, 50, 1000),
      device("mi355x", 2516, 5033, 10066, 288, 8000, 256, 8, 392, 50, 50, 1400),
      device("tpu_v5p", 459, 0, 0, 95, 2765, 8, 8960, 300, 25, 50, 0),
      device("tpu_v6e", 918, 0, 0, 32, 1640, 8, 256, 200, 25, 50, 0),
  };
  return kDevices;
}

}  // namespace

std::string_view to_string(Precision precision) {
  constexpr std::array<std::string_view, 3> kNames = {"bf16", "f8", "f4"};
  return kNames.at(static_cast<std::size_t>(precision));
}

std::optional<Precision> parse_precision(std::string_view text) {
  for (const Precision precision : {Precision::bf16, Precision::f8, Precision::f4}) {
    if (text == to_string(precision)) {
      return precision;
    }
  }
  return std::nullopt;
}

double weight_bytes(Precision precision) {
  // Blocks of 16 f4 elements share a scale of one byte.
  constexpr std::array<double, 3> kBytes = {2, 1, 0.5625};
  return kBytes.at(static_cast<std::size_t>(precision));
}

Precision DeviceModel::narrowest() const {
  return f4_flops > 0 ? Precision::f4 : f8_flops > 0 ? Precision::f8 : Precision::bf16;
}

double DeviceModel::flops(Precision precision) const {
  const double f8 = f8_flops > 0 ? f8_flops : bf16_flops;
  switch (precision) {
    case Precision::f4:
      return f4_flops > 0 ? f4_flops : f8;
    case Precision::f8:
      return f8;
    case Precision::bf16:
      break;
  }
  return bf16_flops;
}

std::vector<std::string_view> known_devices() {
  std::vector<std::string_view> names;
  for (const DeviceModel& device : devices()) {
    names.emplace_back(device.name);
  }
  return names;
}

std::optional<DeviceModel> find_device(std::string_view name) {
  const auto found = std::ranges::find(devices(), name, &DeviceModel::name);
  return found == devices().end() ? std::nullopt : std::optional(*found);
}

network_model::DeviceRates rates_of(const DeviceModel& device, Precision precision) {
  return {.flops_per_s = device.flops(precision) / device.constants.compute,
          .memory_bytes_per_s = device.memory_bytes_per_s / device.constants.memory};
}

std::optional<network_model::DeviceRates> find_rates(std::string_view name) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  const auto device = find_device(name.substr(0, colon));
  const auto precision =
      colon == name.size() ? Precision::bf16 : parse_precision(name.substr(colon + 1));
  return device && precision ? std::optional(rates_of(*device, *precision)) : std::nullopt;
}

std::string device_of_preset(std::string_view topology_name) {
  if (topology_name.starts_with("rail_optimised")) {
    return "h100";  // its nodes are DGX H100
  }
  std::string best;
  for (const DeviceModel& device : devices()) {
    // "gb200" contains "b200", so the longest name wins.
    if (topology_name.find(device.name) != std::string_view::npos &&
        device.name.size() > best.size()) {
      best = device.name;
    }
  }
  return best;
}

Cluster cluster_of(const Topology& topology, const DeviceModel& device) {
  Cluster cluster{.name = topology.name, .device = device, .devices = topology.rank_count()};
  network_model::PathTable paths(topology, {});
  const auto bytes_per_s = [&](int a, int b) {
    return paths.path(paths.find(a, b)).bytes_per_us * 1e6;
  };
  if (cluster.devices == 1) {
    return cluster;
  }
  cluster.near_bytes_per_s = bytes_per_s(0, 1);
  cluster.far_bytes_per_s = bytes_per_s(0, cluster.devices - 1);
  // A domain ends before the first device that is reached at less than half of the speed.
  cluster.domain = 2;
  while (cluster.domain < cluster.devices &&
         bytes_per_s(0, cluster.domain) > cluster.near_bytes_per_s / 2) {
    ++cluster.domain;
  }
  return cluster;
}

Cluster cluster_of(const DeviceModel& device, int devices) {
  const int domains = (devices + device.domain - 1) / device.domain;
  return {.name = device.name,
          .device = device,
          .devices = devices,
          .domain = (devices + domains - 1) / domains,
          .near_bytes_per_s = device.near_bytes_per_s,
          .far_bytes_per_s = device.far_bytes_per_s};
}

Topology part_of(Topology topology, int devices) {
  const int all = topology.rank_count();
  if (devices < 1 || devices > all) {
    throw Error(ErrorCode::usage, topology.name + " has " + std::to_string(all) + " devices, not " +
                                      std::to_string(devices));
  }
  const int domain = cluster_of(topology, {}).domain;
  const int domains = (devices + domain - 1) / domain;
  if (devices % domains != 0) {
    throw Error(ErrorCode::usage, std::to_string(devices) +
                                      " devices cannot be spread evenly over the " +
                                      std::to_string(domains) + " domains of " +
                                      std::to_string(domain) + " that they need");
  }
  std::vector<int> ranks;
  for (int i = 0; i < devices; ++i) {
    const int each = devices / domains;
    ranks.push_back(topology.ranks[static_cast<std::size_t>(i / each * domain + i % each)]);
  }
  topology.ranks = std::move(ranks);
  return topology;
}

double ring_s(const Cluster& cluster, double bytes, int ranks, int apart) {
  if (ranks < 2) {
    return 0;
  }
  const bool is_near = ranks * apart <= cluster.domain;
  // Rings that cross between domains together fill about half of the outgoing links.
  const double ways_out = std::max(1.0, 0.5 * cluster.domain / apart);
  const double bytes_per_s =
      is_near ? cluster.near_bytes_per_s
              : std::min(cluster.near_bytes_per_s, cluster.far_bytes_per_s * ways_out);
  return bytes / bytes_per_s * cluster.device.constants.network;
}

double send_s(const Cluster& cluster, double near_bytes, double far_bytes) {
  const double near = near_bytes > 0 ? near_bytes / cluster.near_bytes_per_s : 0;
  const double far = far_bytes > 0 ? far_bytes / cluster.far_bytes_per_s : 0;
  return std::max(near, far) * cluster.device.constants.network;
}

}  // namespace unisono::planner
