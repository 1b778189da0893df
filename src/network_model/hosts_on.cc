#include "network_model/hosts_on.h"

#include <cstddef>

namespace unisono::network_model {
namespace {

// Returns the rank's node; -1 if it is in none.
int node_of_rank(const Topology& topology, int rank) {
  int device = topology.ranks[static_cast<std::size_t>(rank)];
  while (device >= 0 &&
         topology.devices[static_cast<std::size_t>(device)].kind != DeviceKind::node) {
    device = topology.devices[static_cast<std::size_t>(device)].inside;
  }
  return device;
}

}  // namespace

std::vector<int> hosts_on(const Topology& topology, int ranks) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = node_of_rank(topology, rank);
    hosts.push_back(node >= 0 ? node : topology.ranks[static_cast<std::size_t>(rank)]);
  }
  return hosts;
}

}  // namespace unisono::network_model
