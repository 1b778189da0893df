// Describes one GPU, and a cluster as layouts see it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "planner/precision.h"
#include "topology/topology.h"

namespace unisono::network_model {
struct DeviceRates;
}  // namespace unisono::network_model

namespace unisono::planner {

// The slowdown of each part against the device's data sheet. One set serves all devices, and is
// fitted to the steps of all stacks together; the levels (stacks.h) describe how stacks and devices
// differ.
struct Constants {
  double compute = 1.25;  // matrix products
  double memory = 2.0;    // traffic of the device's memory
  double network = 1.0;   // traffic between devices
  double experts = 1.5;   // all work of a layer with experts
  std::string source = "the measured steps of all stacks";
};

struct DeviceModel {
  std::string name = {};
  double bf16_flops = 0;  // per second, dense, like all peaks
  double f8_flops = 0;    // 0: equal to bf16
  double f4_flops = 0;    // 0: equal to f8
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;
  // The machines in which the device is sold: how many devices fast links join, and the bandwidth
  // per device and direction that collectives reach inside a machine and between machines.
  int domain = 8;
  double near_bytes_per_s = 0;
  double far_bytes_per_s = 0;
  double host_bytes_per_s = 0;  // to and from host memory, per direction
  double watts = 0;             // limit according to the data sheet; 0: unknown
  double price_per_hour = 0;    // in any currency; 0: unknown
  Constants constants = {};

  double flops(Precision precision) const;
  Precision narrowest() const;  // narrowest precision of its products
};

std::vector<std::string_view> known_devices();
std::optional<DeviceModel> find_device(std::string_view name);
// Parses a device file (docs/formats/device.md).
Parsed<DeviceModel> parse_device_json(std::string_view text);
// Returns the product and memory rates that a device reaches with its constants. The precision
// follows a colon ("h100:f8"); without one it is bf16. Returns nothing for an unknown device.
network_model::DeviceRates rates_of(const DeviceModel& device, Precision precision);
std::optional<network_model::DeviceRates> find_rates(std::string_view name);
// Returns the device in a preset's machines; empty if it is unknown.
std::string device_of_preset(std::string_view topology_name);

// Devices that fast links join into domains (a node, a rack), with slower links between domains.
struct Cluster {
  std::string name = {};
  DeviceModel device = {};
  int devices = 1;
  int domain = 1;               // devices per domain
  double near_bytes_per_s = 0;  // between devices of one domain
  double far_bytes_per_s = 0;   // between devices of different domains
  double headroom = 0.05;       // share of a device's memory that layouts must leave free

  double usable_bytes() const { return device.memory_bytes * (1 - headroom); }
};

// Errors: Error(usage) if there is no route between two ranks.
Cluster cluster_of(const Topology& topology, const DeviceModel& device);
// Returns a cluster of `devices` devices in the machines in which they are sold, in domains of
// equal size.
Cluster cluster_of(const DeviceModel& device, int devices);
// Returns `devices` ranks of a topology: in one domain if they fit, otherwise equally many in each
// of the fewest domains.
// Errors: Error(usage) if the topology has fewer, or if they cannot be spread evenly.
Topology part_of(Topology topology, int devices);

// Returns the time of a collective in which each of `ranks` sends `bytes` to its neighbour, which
// is `apart` devices away. The ranks of one domain share its links to the outside.
double ring_s(const Cluster& cluster, double bytes, int ranks, int apart);

// Returns the time in which one device sends `near_bytes` inside its domain and `far_bytes` out of
// it.
double send_s(const Cluster& cluster, double near_bytes, double far_bytes);

}  // namespace unisono::planner
