#include "planner/device.h"

#include <algorithm>
#include <array>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/workload.h"

namespace unisono::planner {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

// Peaks and memory: the data sheets of NVIDIA, dense rates.
const std::vector<DeviceModel>& devices() {
  static const std::vector<DeviceModel> kDevices = {
      {.name = "a100",
       .bf16_flops = 312 * kTera,
       .memory_bytes = 80 * kGiga,
       .memory_bytes_per_s = 2039 * kGiga,
       .multiprocessors = 108,
       .constants = {.compute = 1.17,
                     .memory = 2.12,
                     .network = 1.0,
                     .experts = 1.5,
                     .source = "37 steps of GPT, 2024"}},
      {.name = "h100",
       .bf16_flops = 989 * kTera,
       .f8_flops = 1979 * kTera,
       .memory_bytes = 80 * kGiga,
       .memory_bytes_per_s = 3350 * kGiga,
       .multiprocessors = 132,
       .constants = {.compute = 1.30,
                     .memory = 1.11,
                     .network = 1.2,
                     .experts = 1.75,
                     .source = "11 throughputs of Megatron Bridge, 25.11 to 26.06"}},
      {.name = "h200",
       .bf16_flops = 989 * kTera,
       .f8_flops = 1979 * kTera,
       .memory_bytes = 141 * kGiga,
       .memory_bytes_per_s = 4800 * kGiga,
       .multiprocessors = 132,
       .constants = {.compute = 1.30,
                     .memory = 1.11,
                     .network = 1.2,
                     .experts = 1.75,
                     .source = "those of h100"}},
      {.name = "b200",
       .bf16_flops = 2250 * kTera,
       .f8_flops = 4500 * kTera,
       .f4_flops = 9000 * kTera,
       .memory_bytes = 180 * kGiga,
       .memory_bytes_per_s = 8000 * kGiga,
       .multiprocessors = 148,
       .constants = {.compute = 1.20,
                     .memory = 3.83,
                     .network = 1.2,
                     .experts = 1.3,
                     .source = "those of gb200; experts of 7 throughputs"}},
      {.name = "b300",
       .bf16_flops = 2250 * kTera,
       .f8_flops = 4500 * kTera,
       .f4_flops = 13500 * kTera,
       .memory_bytes = 288 * kGiga,
       .memory_bytes_per_s = 8000 * kGiga,
       .multiprocessors = 148,
       .constants = {.compute = 1.20,
                     .memory = 3.83,
                     .network = 1.2,
                     .experts = 0.9,
                     .source = "those of gb200; experts of 7 throughputs"}},
      {.name = "gb200",
       .bf16_flops = 2500 * kTera,
       .f8_flops = 5000 * kTera,
       .f4_flops = 10000 * kTera,
       .memory_bytes = 186 * kGiga,
       .memory_bytes_per_s = 8000 * kGiga,
       .multiprocessors = 152,
       .constants = {.compute = 1.20,
                     .memory = 3.83,
                     .network = 1.2,
                     .experts = 0.93,
                     .source = "19 throughputs of Megatron Bridge, 25.11 to 26.06"}},
      {.name = "gb300",
       .bf16_flops = 2500 * kTera,
       .f8_flops = 5000 * kTera,
       .f4_flops = 15000 * kTera,
       .memory_bytes = 288 * kGiga,
       .memory_bytes_per_s = 8000 * kGiga,
       .multiprocessors = 152,
       .constants = {.compute = 1.20,
                     .memory = 3.86,
                     .network = 1.2,
                     .experts = 0.83,
                     .source = "18 throughputs of Megatron Bridge, 25.11 to 26.08"}},
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
  // Blocks of 16 elements of f4 share a scale of one byte.
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
    // "gb200" has "b200" in it: the longest name is meant.
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
  // A domain ends where the next device is reached at less than half the speed.
  cluster.domain = 2;
  while (cluster.domain < cluster.devices &&
         bytes_per_s(0, cluster.domain) > cluster.near_bytes_per_s / 2) {
    ++cluster.domain;
  }
  return cluster;
}

double ring_s(const Cluster& cluster, double bytes, int ranks, int apart) {
  if (ranks < 2) {
    return 0;
  }
  const bool is_near = ranks * apart <= cluster.domain;
  // Rings that cross between domains fill about half of the ways out together.
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
