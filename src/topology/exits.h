// Finds, once for all routes, the paths by which ranks leave and enter their nodes. Most of the
// path from a rank into a network has no alternative, whatever the target.
//
// A door of a rank is the device at the other end of one of the rank's links. A door leads into a
// network: all devices that can be reached from the door without passing through a rank. An exit
// follows the path from a door as long as the path has only one continuation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace unisono {

class Exits {
 public:
  // `network`: for each device without a rank, the number of its network.
  Exits(const Topology& topology, const LinksOut& out, const LinksOut& in,
        const std::vector<int>& network);

  // The beginning and the end of a route: the links from the source in order, the links to the
  // target from the last one back, and the devices between which the middle of the route lies.
  struct Ends {
    std::vector<int>& route;
    std::vector<int>& back;
    int source = 0;
    int target = 0;
    double width = 0;  // of the narrowest of these links; unset if the ends meet
  };
  // Fills `ends`; if both devices are the same, the route is complete. Returns false, and fills
  // nothing, if the exits are unknown.
  bool find(int from_rank, int to_rank, Ends& ends) const;

 private:
  static constexpr std::size_t kDoors = 2;
  static constexpr std::size_t kMost = 2;  // links per exit
  struct Exit {
    std::array<int, kMost> links = {};
    std::array<int, kMost> devices = {-1, -1};
    std::int32_t count = 0;
    int network = -1;
    double width = 0;  // of the narrowest link

    int end() const { return devices[static_cast<std::size_t>(count) - 1]; }
  };
  using Doors = std::array<Exit, kDoors>;  // of one rank; without a first exit: unknown
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
