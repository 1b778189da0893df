#include "network_model/shapes_on.h"

#include <cstddef>
#include <set>
#include <string>

namespace unisono::network_model {
namespace {

// -1: it is in none.
int node_of_rank(const Topology& topology, int rank) {
  int device = topology.ranks[static_cast<std::size_t>(rank)];
  while (device >= 0 &&
         topology.devices[static_cast<std::size_t>(device)].kind != DeviceKind::node) {
    device = topology.devices[static_cast<std::size_t>(device)].inside;
  }
  return device;
}

// Returns the number of ranks per node, if all have the same number and the ranks come node by
// node; else 0.
int ranks_of_a_node(const Topology& topology, int ranks) {
  int block = 0;
  while (block < ranks && node_of_rank(topology, block) == node_of_rank(topology, 0)) {
    ++block;
  }
  std::set<int> seen;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = node_of_rank(topology, rank);
    const bool right =
        rank % block == 0 ? seen.insert(node).second : node == node_of_rank(topology, rank - 1);
    if (node < 0 || !right) {
      return 0;
    }
  }
  return ranks % block == 0 ? block : 0;
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

std::vector<Shape> shapes_on(const Topology& topology, const Algorithm& algorithm, Shape usual) {
  std::vector<Shape> shapes = {complete(algorithm, usual)};
  const AlgorithmParameters parameters = shapes.front().parameters;
  const int local = ranks_of_a_node(topology, usual.ranks);
  if (parameters.local.front() > 0 && local > 1 && local < usual.ranks) {
    shapes.front().parameters.local = {local};
  }
  for (const int segments : {4, 16, 64}) {
    if (parameters.segments > 0 && parameters.segments != segments) {
      shapes.push_back(shapes.front());
      shapes.back().parameters.segments = segments;
    }
  }
  std::set<std::string> names;
  std::erase_if(shapes, [&](const Shape& shape) {
    return !can_serve(algorithm, shape) || !names.insert(full_name(algorithm, shape)).second;
  });
  return shapes;
}

}  // namespace unisono::network_model
