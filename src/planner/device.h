// What one GPU can do, and what a cluster of them is to a layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/precision.h"
#include "topology/topology.h"

namespace unisono::network_model {
struct DeviceRates;
}  // namespace unisono::network_model

namespace unisono::planner {

// Fitted to measurements (docs/guides/plan-a-model.md says to which): each is how many times as
// long the part takes as the device's data sheet promises. Without measurements: the geometric mean
// of the classes that have some, and a network as fast as its topology says.
struct Constants {
  double compute = 1.25;    // matrix products
  double memory = 2.0;      // what moves through the device's memory
  double network = 1.0;     // what moves between devices
  double experts = 1.5;     // of all that a layer of experts does
  std::string source = {};  // empty: no measurement of this device
};

struct DeviceModel {
  std::string name = {};
  double bf16_flops = 0;  // a second, dense, as all peaks
  double f8_flops = 0;    // 0: as bf16
  double f4_flops = 0;    // 0: as f8
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;
  Constants constants = {};

  double flops(Precision precision) const;
  Precision narrowest() const;  // that it multiplies in
};

std::vector<std::string_view> known_devices();
std::optional<DeviceModel> find_device(std::string_view name);
// What a device of that name reaches on products and in its memory, as its constants say; after a
// colon its precision, "h100:f8", else bf16. Empty: there is none.
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
};

// Errors: Error(usage) if ranks have no way to each other.
Cluster cluster_of(const Topology& topology, const DeviceModel& device);

// How long a collective of `ranks` takes in which each sends `bytes` to its neighbour, of ranks
// that lie `apart` devices from one to the next. Those of one domain share their ways out of it.
double ring_s(const Cluster& cluster, double bytes, int ranks, int apart);

// How long one device needs to send `near_bytes` within its domain and `far_bytes` out of it.
double send_s(const Cluster& cluster, double near_bytes, double far_bytes);

}  // namespace unisono::planner
