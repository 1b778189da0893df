// Describes one GPU, and a cluster as a layout sees it.
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

// The slowdown of each part against the device's data sheet. One set serves all devices and is
// fitted to the steps of all stacks together; the levels (stacks.h) describe how stacks and devices
// differ.
struct Constants {
  double compute = 1.25;  // matrix products
  double memory = 2.0;    // what moves through the device's memory
  double network = 1.0;   // what moves between devices
  double experts = 1.5;   // of all that a layer of experts does
  std::string source = "the measured steps of all stacks";
};

struct DeviceModel {
  std::string name = {};
  double bf16_flops = 0;  // a second, dense, as all peaks
  double f8_flops = 0;    // 0: as bf16
  double f4_flops = 0;    // 0: as f8
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;
  // The machines that it is sold in: devices that fast links join, and what collectives reach
  // there and between them, a device and way.
  int domain = 8;
  double near_bytes_per_s = 0;
  double far_bytes_per_s = 0;
  double host_bytes_per_s = 0;  // to and from the host's memory, each way
  double watts = 0;             // at most, by the data sheet; 0: not known
  double price_per_hour = 0;    // in any currency; 0: not known
  Constants constants = {};

  double flops(Precision precision) const;
  Precision narrowest() const;  // that it multiplies in
};

std::vector<std::string_view> known_devices();
std::optional<DeviceModel> find_device(std::string_view name);
// A device file (docs/formats/device.md).
Parsed<DeviceModel> parse_device_json(std::string_view text);
// Returns the product and memory rates that a device reaches by its constants. The precision
// follows a colon ("h100:f8"); without one it is bf16. Empty: no such device.
network_model::DeviceRates rates_of(const DeviceModel& device, Precision precision);
std::optional<network_model::DeviceRates> find_rates(std::string_view name);
// The device that a preset's machines have; empty: it says nothing about them.
std::string device_of_preset(std::string_view topology_name);

// Devices joined by fast links in domains (a node, a rack), and by slower ones between them.
struct Cluster {
  std::string name = {};
  DeviceModel device = {};
  int devices = 1;
  int domain = 1;               // devices that the fast links join
  double near_bytes_per_s = 0;  // of one device to another of its domain
  double far_bytes_per_s = 0;   // of one device to one of another domain
  double headroom = 0.05;       // of a device's memory, which no layout may fill

  double usable_bytes() const { return device.memory_bytes * (1 - headroom); }
};

// Errors: Error(usage) if ranks have no way to each other.
Cluster cluster_of(const Topology& topology, const DeviceModel& device);
// Returns `devices` devices in the machines that they are sold in, in domains of equal size.
Cluster cluster_of(const DeviceModel& device, int devices);
// Returns `devices` ranks of a topology: some of one domain, or equally many of each of the fewest
// domains.
// Errors: Error(usage) if the topology has fewer, or they cannot be spread evenly.
Topology part_of(Topology topology, int devices);

// Returns the time of a collective in which each of `ranks` sends `bytes` to its neighbour, which
// is `apart` devices away. Ranks of one domain share its links to the outside.
double ring_s(const Cluster& cluster, double bytes, int ranks, int apart);

// Returns the time in which one device sends `near_bytes` in its domain and `far_bytes` out of it.
double send_s(const Cluster& cluster, double near_bytes, double far_bytes);

}  // namespace unisono::planner
