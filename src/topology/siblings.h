// Switches that are the same to the rest of a network: the leaves of a pod that all lead to the
// same switches above, over links alike, and differ in nothing but what hangs below them.
//
// What only hangs on a switch (a NIC, a host's tree) is on no way between two others, so the core
// is what remains without it. Two siblings have the same neighbours in the core, in the same order,
// over links of the same bandwidth. Exchanging them changes nothing else: all shortest ways between
// two switches are those between their siblings, but for the first and the last link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "topology/topology.h"

namespace unisono {

// Keeps a reference to the topology.
class Siblings {
 public:
  Siblings(const Topology& topology, const LinksOut& out, const LinksOut& in);

  // Returns the devices that represent two devices and all pairs of their siblings; the devices
  // themselves if they have none, or one of them is not in the core. REQUIRES: the devices differ.
  struct Pair {
    int source = 0;
    int target = 0;
  };
  Pair stand_in(Pair devices) const;

  // The link that leaves `device` as `link` leaves its sibling; the one that comes to it likewise.
  int link_from(int device, int link) const;
  int link_to(int device, int link) const;

 private:
  // The links of the core that leave (come to) each of its devices.
  struct Ends {
    std::vector<int> first = {};  // of each device in `links`, and one more
    std::vector<int> links = {};

    std::span<const int> of(int device) const {
      const auto at = static_cast<std::size_t>(device);
      return std::span(links).subspan(static_cast<std::size_t>(first[at]),
                                      static_cast<std::size_t>(first[at + 1] - first[at]));
    }
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  std::vector<bool> core_of(const LinksOut& out, const LinksOut& in) const;
  Ends ends_of(const LinksOut& all, const std::vector<bool>& in_core) const;
  void find_siblings(const std::vector<bool>& in_core);
  bool are_alike(int a, int b) const;
  bool lead_alike(std::span<const int> some, std::span<const int> others, bool out) const;
  std::uint64_t signature(int device) const;
  int in_place_of(int link, std::span<const int> likes, std::span<const int> links) const;

  const Topology& topology_;
  Ends out_;
  Ends in_;
  std::vector<int> first_;   // of the siblings of a device of the core; -1: it is not in the core
  std::vector<int> second_;  // of the siblings of a first one; -1: it has none
};

}  // namespace unisono
