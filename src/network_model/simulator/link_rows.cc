#include "network_model/simulator/link_rows.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace unisono::network_model {
namespace {

constexpr int kNone = -1;

std::size_t place_of(int index) {
  return static_cast<std::size_t>(index);
}

// The links of one direction at a device, as far as they can be in a row.
struct Side {
  std::array<int, 2> links = {kNone, kNone};
  bool has_more = false;

  void add(int link) {
    if (links[1] != kNone) {
      has_more = true;
    } else {
      links[links[0] == kNone ? 0 : 1] = link;
    }
  }
};

struct DeviceLinks {
  Side in;
  Side out;
  bool has_rank = false;
};

std::vector<DeviceLinks> links_of_devices(const Topology& topology) {
  std::vector<DeviceLinks> device_links(topology.devices.size());
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    device_links[place_of(topology.links[i].from)].out.add(static_cast<int>(i));
    device_links[place_of(topology.links[i].to)].in.add(static_cast<int>(i));
  }
  for (const int device : topology.ranks) {
    device_links[place_of(device)].has_rank = true;
  }
  return device_links;
}

// Returns the only link of the side that does not join the neighbour; none if there is no such
// link, or several.
int only_one(const Topology& topology, const Side& side, int neighbour) {
  int only = kNone;
  for (const int link : side.links) {
    if (link == kNone || topology.links[place_of(link)].from == neighbour ||
        topology.links[place_of(link)].to == neighbour) {
      continue;
    }
    if (only != kNone) {
      return kNone;
    }
    only = link;
  }
  return only;
}

}  // namespace

std::vector<int> first_of_rows(const Topology& topology) {
  const std::vector<DeviceLinks> device_links = links_of_devices(topology);
  std::vector<int> before(topology.links.size(), kNone);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const DeviceLinks& device_link = device_links[place_of(link.to)];
    if (device_link.has_rank || device_link.in.has_more || device_link.out.has_more) {
      continue;
    }
    const int next = only_one(topology, device_link.out, link.from);
    if (next != kNone && only_one(topology, device_link.in, topology.links[place_of(next)].to) ==
                             static_cast<int>(i)) {
      before[place_of(next)] = static_cast<int>(i);
    }
  }
  std::vector<int> first(topology.links.size(), kNone);
  for (std::size_t i = 0; i < first.size(); ++i) {
    int link = static_cast<int>(i);
    // A row without a first link is a circle, which no route between ranks uses.
    for (std::size_t steps = 0; before[place_of(link)] != kNone && steps < first.size(); ++steps) {
      link = first[place_of(before[place_of(link)])] != kNone
                 ? first[place_of(before[place_of(link)])]
                 : before[place_of(link)];
    }
    first[i] = link;
  }
  return first;
}

}  // namespace unisono::network_model
