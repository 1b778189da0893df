#include "cost/shapes.h"

#include <cstddef>
#include <set>
#include <string>

namespace unisono::cost {
namespace {

// Returns the ranks per host if all hosts have the same number and the ranks come host by host;
// else 0.
int ranks_of_a_host(std::span<const int> hosts) {
  std::size_t block = 0;
  while (block < hosts.size() && hosts[block] == hosts[0]) {
    ++block;
  }
  std::set<int> seen;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const bool right =
        rank % block == 0 ? seen.insert(hosts[rank]).second : hosts[rank] == hosts[rank - 1];
    if (!right) {
      return 0;
    }
  }
  return block > 0 && hosts.size() % block == 0 ? static_cast<int>(block) : 0;
}

}  // namespace

std::vector<Shape> shapes_on(std::span<const int> hosts, const Algorithm& algorithm, Shape usual) {
  std::vector<Shape> shapes = {complete(algorithm, usual)};
  const AlgorithmParameters parameters = shapes.front().parameters;
  const int local = ranks_of_a_host(hosts);
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

}  // namespace unisono::cost
