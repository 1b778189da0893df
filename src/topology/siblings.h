// Finds switches that are equivalent to the rest of a network. For example, the leaves of a pod all
// lead to the same upper switches over equal links, and differ only in the devices below them.
//
// A device that is attached to only one switch (a NIC, a host's tree) is on no path between two
// other devices. The core is the network without such devices. Two siblings have the same
// neighbours in the core, in the same order, over links of the same bandwidth. Exchanging them
// changes nothing else: all shortest paths between two switches are the shortest paths between
// their siblings, except for the first and the last link.
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

  // Returns the devices that represent these two devices and all pairs of their siblings; the
  // devices themselves if they have no siblings, or if one of them is not in the core. REQUIRES:
  // the devices differ.
  struct Pair {
    int source = 0;
    int target = 0;
  };
  Pair stand_in(Pair devices) const;

  // Returns the link from (to) `device` that corresponds to its sibling's `link`.
  int link_from(int device, int link) const;
  int link_to(int device, int link) const;

 private:
  // The core links that leave (or enter) each core device.
  struct Ends {
    std::vector<int> first = {};  // by device: its first index in `links`; one more at the end
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
  std::vector<int> first_;   // by device: the first of its siblings; -1: not in the core
  std::vector<int> second_;  // by first sibling: the second one; -1: none
};

}  // namespace unisono
