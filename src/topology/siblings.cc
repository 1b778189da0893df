#include "topology/siblings.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace unisono {

Siblings::Siblings(const Topology& topology, const LinksOut& out, const LinksOut& in)
    : topology_(topology),
      first_(topology.devices.size(), -1),
      second_(topology.devices.size(), -1) {
  const std::vector<bool> in_core = core_of(out, in);
  out_ = ends_of(out, in_core);
  in_ = ends_of(in, in_core);
  find_siblings(in_core);
}

// Removes the devices with a rank, and then repeatedly every device that has fewer than two
// neighbours left. No path between two core devices is lost: on a path through removed devices, the
// first one removed would still have had two neighbours.
std::vector<bool> Siblings::core_of(const LinksOut& out, const LinksOut& in) const {
  std::vector<bool> in_core(topology_.devices.size(), true);
  for (const int device : topology_.ranks) {
    in_core[at(device)] = false;
  }
  std::vector<int> open;
  // `one`: the only remaining neighbour; -1 if there is none.
  const auto has_two = [&](int device, int& one) {
    one = -1;
    for (const LinksOut* links : {&out, &in}) {
      for (const int link : links->of(device)) {
        const Link& found = topology_.links[at(link)];
        const int other = found.from == device ? found.to : found.from;
        if (in_core[at(other)] && other != one && std::exchange(one, other) >= 0) {
          return true;
        }
      }
    }
    return false;
  };
  for (int device = 0; device < static_cast<int>(in_core.size()); ++device) {
    open.push_back(device);
    while (!open.empty()) {
      const int last = open.back();
      open.pop_back();
      int neighbour = -1;
      if (in_core[at(last)] && !has_two(last, neighbour)) {
        in_core[at(last)] = false;
        if (neighbour >= 0) {
          open.push_back(neighbour);
        }
      }
    }
  }
  return in_core;
}

Siblings::Ends Siblings::ends_of(const LinksOut& all, const std::vector<bool>& in_core) const {
  Ends ends{.first = {0}};
  ends.first.reserve(in_core.size() + 1);
  for (std::size_t device = 0; device < in_core.size(); ++device) {
    for (const int link : all.of(static_cast<int>(device))) {
      const Link& found = topology_.links[at(link)];
      if (in_core[at(found.from)] && in_core[at(found.to)]) {
        ends.links.push_back(link);
      }
    }
    ends.first.push_back(static_cast<int>(ends.links.size()));
  }
  return ends;
}

void Siblings::find_siblings(const std::vector<bool>& in_core) {
  std::unordered_map<std::uint64_t, std::vector<int>> firsts;  // by signature
  for (int device = 0; device < static_cast<int>(in_core.size()); ++device) {
    if (!in_core[at(device)]) {
      continue;
    }
    std::vector<int>& known = firsts[signature(device)];
    const auto sibling = std::find_if(known.begin(), known.end(),
                                      [&](int other) { return are_alike(device, other); });
    if (sibling == known.end()) {
      known.push_back(device);
      first_[at(device)] = device;
      continue;
    }
    first_[at(device)] = *sibling;
    if (second_[at(*sibling)] < 0) {
      second_[at(*sibling)] = device;
    }
  }
}

std::uint64_t Siblings::signature(int device) const {
  Hash hash;
  for (const int link : out_.of(device)) {
    hash.add(static_cast<std::uint64_t>(topology_.links[at(link)].to));
    hash.add(std::bit_cast<std::uint64_t>(topology_.links[at(link)].bytes_per_us));
  }
  hash.add(out_.of(device).size());
  for (const int link : in_.of(device)) {
    hash.add(static_cast<std::uint64_t>(topology_.links[at(link)].from));
    hash.add(std::bit_cast<std::uint64_t>(topology_.links[at(link)].bytes_per_us));
  }
  return hash.value();
}

bool Siblings::are_alike(int a, int b) const {
  return lead_alike(out_.of(a), out_.of(b), true) && lead_alike(in_.of(a), in_.of(b), false);
}

bool Siblings::lead_alike(std::span<const int> some, std::span<const int> others, bool out) const {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(), [&](int a, int b) {
    const Link& one = topology_.links[at(a)];
    const Link& other = topology_.links[at(b)];
    return (out ? one.to == other.to : one.from == other.from) &&
           one.bytes_per_us == other.bytes_per_us;
  });
}

Siblings::Pair Siblings::stand_in(Pair devices) const {
  const int source = first_[at(devices.source)];
  const int target = first_[at(devices.target)];
  if (source < 0 || target < 0) {
    return devices;
  }
  return {.source = source, .target = source == target ? second_[at(source)] : target};
}

int Siblings::in_place_of(int link, std::span<const int> likes, std::span<const int> links) const {
  const auto place = std::find(likes.begin(), likes.end(), link);
  return links[at(static_cast<int>(place - likes.begin()))];
}

int Siblings::link_from(int device, int link) const {
  const int like = topology_.links[at(link)].from;
  return like == device ? link : in_place_of(link, out_.of(like), out_.of(device));
}

int Siblings::link_to(int device, int link) const {
  const int like = topology_.links[at(link)].to;
  return like == device ? link : in_place_of(link, in_.of(like), in_.of(device));
}

}  // namespace unisono
