#include "topology/exits.h"

#include <algorithm>
#include <cstddef>

namespace unisono {

Exits::Exits(const Topology& topology, const LinksOut& out, const LinksOut& in,
             const std::vector<int>& network)
    : topology_(topology),
      out_(out),
      in_(in),
      network_(network),
      has_rank_(topology.devices.size()) {
  for (const int device : topology.ranks) {
    has_rank_[static_cast<std::size_t>(device)] = true;
  }
  to_.reserve(topology.ranks.size());
  from_.reserve(topology.ranks.size());
  for (const int device : topology.ranks) {
    to_.push_back(doors_of(device, false));
    from_.push_back(doors_of(device, true));
  }
}

Exits::Doors Exits::doors_of(int device, bool backward) const {
  Doors doors;
  std::size_t count = 0;
  for (const int link : (backward ? in_ : out_).of(device)) {
    const Link& found = topology_.links[static_cast<std::size_t>(link)];
    const int door = backward ? found.from : found.to;
    if (has_rank_[static_cast<std::size_t>(door)] || count == kDoors) {
      return {};
    }
    Exit& exit = doors[count++];
    exit = {.links = {link, -1},
            .devices = {door, -1},
            .count = 1,
            .network = network_[static_cast<std::size_t>(door)],
            .width = found.bytes_per_us};
    if (!follow(exit, device, backward)) {
      return {};
    }
  }
  return doors;
}

// Follows the path as long as there is only one link to follow. Returns false if the path is too
// long.
bool Exits::follow(Exit& exit, int before, bool backward) const {
  while (true) {
    int only = -1;
    int ways = 0;
    for (const int link : (backward ? in_ : out_).of(exit.end())) {
      const Link& found = topology_.links[static_cast<std::size_t>(link)];
      const int next = backward ? found.from : found.to;
      if (next != before && !has_rank_[static_cast<std::size_t>(next)]) {
        only = link;
        ++ways;
      }
    }
    if (ways != 1) {
      return true;
    }
    const auto place = static_cast<std::size_t>(exit.count);
    if (place == kMost) {
      return false;
    }
    before = exit.end();
    const Link& found = topology_.links[static_cast<std::size_t>(only)];
    exit.links[place] = only;
    exit.devices[place] = backward ? found.from : found.to;
    exit.width = std::min(exit.width, found.bytes_per_us);
    ++exit.count;
  }
}

// Returns the doors of the route, if they are certain: exactly one network joins the two ranks, or
// they share exactly one door, through which the route is shortest.
Exits::Pair Exits::joined(const Doors& out, const Doors& in) const {
  Pair by_network;
  Pair by_door;
  int networks = 0;
  int shared = 0;
  for (const Exit& one : out) {
    for (const Exit& other : in) {
      if (one.count == 0 || other.count == 0) {
        continue;
      }
      if (one.network == other.network) {
        by_network = {.out = &one, .in = &other};
        ++networks;
      }
      if (one.devices[0] == other.devices[0]) {
        by_door = {.out = &one, .in = &other};
        ++shared;
      }
    }
  }
  return shared == 1 ? by_door : networks == 1 && shared == 0 ? by_network : Pair{};
}

// Returns true if the paths meet before their ends.
bool Exits::cross(const Exit& out, const Exit& in) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count); ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(in.count); ++k) {
      const bool are_ends = i + 1 == static_cast<std::size_t>(out.count) &&
                            k + 1 == static_cast<std::size_t>(in.count);
      if (!are_ends && out.devices[i] == in.devices[k]) {
        return true;
      }
    }
  }
  return false;
}

bool Exits::find(int from_rank, int to_rank, Ends& ends) const {
  const auto [out, in] =
      joined(to_[static_cast<std::size_t>(from_rank)], from_[static_cast<std::size_t>(to_rank)]);
  if (out == nullptr) {
    return false;
  }
  if (out->devices[0] == in->devices[0]) {
    ends.route.push_back(out->links[0]);
    ends.back.push_back(in->links[0]);
    ends.source = ends.target = out->devices[0];
    return true;
  }
  if (cross(*out, *in)) {
    return false;
  }
  ends.route.assign(out->links.begin(), out->links.begin() + out->count);
  ends.back.assign(in->links.begin(), in->links.begin() + in->count);
  ends.source = out->end();
  ends.target = in->end();
  ends.width = std::min(out->width, in->width);
  return true;
}

}  // namespace unisono
