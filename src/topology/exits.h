// The ways that ranks have out of their nodes and into them, found once for all routes: most of
// what leads from a rank into a network can go only one way, whatever the target.
//
// A door of a rank is the device behind one of its links; it leads to all that can be reached from
// there without passing through a rank, a network. From a door the way is followed as long as only
// one leads on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace unisono {

class Exits {
 public:
  // `network`: of each device without a rank, the number of what it is joined to.
  Exits(const Topology& topology, const LinksOut& out, const LinksOut& in,
        const std::vector<int>& network);

  // The beginning and the end of a route: the links from the source on, those to the target from
  // the last one back, and the devices that they lead to (from).
  struct Ends {
    std::vector<int>& route;
    std::vector<int>& back;
    int source = 0;
    int target = 0;
    double width = 0;  // of the narrowest of these links, unless they meet
  };
  // Fills `ends`; they meet if their devices are the same. false: not known, and nothing is filled.
  bool find(int from_rank, int to_rank, Ends& ends) const;

 private:
  static constexpr std::size_t kDoors = 2;
  static constexpr std::size_t kMost = 2;  // links of an exit
  struct Exit {
    std::array<int, kMost> links = {};
    std::array<int, kMost> devices = {-1, -1};
    std::int32_t count = 0;
    int network = -1;
    double width = 0;  // of the narrowest link

    int end() const { return devices[static_cast<std::size_t>(count) - 1]; }
  };
  using Doors = std::array<Exit, kDoors>;  // of a rank; no first one: not known
  struct Pair {
    const Exit* out = nullptr;
    const Exit* in = nullptr;
  };

  Doors doors_of(int device, bool backward) const;
  bool follow(Exit& exit, int before, bool backward) const;
  Pair joined(const Doors& out, const Doors& in) const;
  static bool cross(const Exit& out, const Exit& in);

  const Topology& topology_;
  const LinksOut& out_;
  const LinksOut& in_;
  const std::vector<int>& network_;
  std::vector<bool> has_rank_;
  std::vector<Doors> to_;  // by rank
  std::vector<Doors> from_;
};

}  // namespace unisono
