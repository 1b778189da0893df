// Routes between ranks: shortest paths, found on request.
//
// A route has the fewest links. Among the paths with the fewest links it is the widest (the largest
// bandwidth of its narrowest link). It passes through no device with a rank. If several such paths
// remain, RouteChoice decides. The same pair always has the same route.
//
// There is no table of all pairs. Most of the path from a rank into a network has no alternative (a
// host, its NIC, its first switch: exits.h). The part between two switches is searched for once
// (shortest_ways.h) and cached, because all ranks behind these switches share it. Their siblings
// (siblings.h) share it too, except for its first and last link.
//
// Zahavi et al., D-mod-k routing providing non-blocking traffic for shift permutations on real life
// fat trees, 2010.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/exits.h"
#include "topology/shortest_ways.h"
#include "topology/siblings.h"
#include "topology/topology.h"

namespace unisono {

enum class RouteChoice : std::uint8_t {
  // The destination alone decides: each switch uses the port that leads down to it, as in the
  // static routing of fat trees (D-mod-k). Ranks behind one switch that all send over the same
  // distance share no link.
  fixed,
  // A hash of both ranks decides, as Ethernet switches choose among paths of equal cost.
  hashed,
  // All of them: every switch splits the traffic for a rank evenly over the links that lead there,
  // as do switches that choose the least loaded port for each packet.
  adaptive
};

// Keeps a reference to the topology. One thread at a time uses a router.
class Router {
 public:
  explicit Router(const Topology& topology, RouteChoice choice = RouteChoice::fixed)
      : Router(topology, choice, true) {}
  // Returns a router that searches for the paths of each pair of ranks, without exits and siblings,
  // which must not change the result.
  static Router searching(const Topology& topology, RouteChoice choice) {
    return Router(topology, choice, false);
  }

  // Returns the links from the device of one rank to that of another, in order; empty if from ==
  // to. With adaptive routes, returns all links of all paths.
  // Errors: Error(usage) if there is no route.
  const std::vector<int>& route(int from_rank, int to_rank);
  // Returns the share of the bytes on each link of the latest route; empty: all bytes on every
  // link.
  const std::vector<double>& shares() const { return shares_; }

 private:
  Router(const Topology& topology, RouteChoice choice, bool knows_parts);

  // The part of a route that has alternatives.
  struct Middle {
    int source = -1;
    int target = -1;
    double width = 0;  // of the rest of the route
    bool operator==(const Middle&) const = default;
  };
  // All paths between two devices, from the target to the source.
  struct Ways {
    struct Place {
      int device = 0;
      std::size_t first = 0;  // index of its first step
      std::size_t count = 0;
    };
    struct Step {
      int link = 0;
      std::size_t from = 0;  // index of a place
    };
    Middle middle = {};
    std::vector<Place> places = {};  // the target first; empty: there is no path
    std::vector<Step> steps = {};
  };

  // The chosen links for a turn, if only the target decides.
  struct Chosen {
    Middle middle = {};
    int turn = 0;
    int count = 0;
    std::array<int, 4> links = {};
  };
  // Large enough, in a fabric with thousands of ranks, for the messages of neighbouring steps of an
  // all_to_all.
  static constexpr std::size_t kMostChosen = std::size_t{1} << 18U;

  static std::uint64_t pair_of(const Middle& middle) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(middle.source)) << 32U |
           static_cast<std::uint32_t>(middle.target);
  }
  int only_way(int device, int goal, int came_from, bool backward) const;
  bool leads_to(int device, int goal, bool backward) const;
  void approach(int& source, int& target);
  bool find_ends(int from_rank, int to_rank, Middle& middle);
  bool add_middle(int from_rank, int to_rank, const Middle& middle);
  bool add_fixed(const Middle& middle, int turn);
  const Ways& ways_of(Middle middle);
  int own_link(const Ways& ways, const Middle& middle, int link) const;
  void choose_one(const Ways& ways, const Middle& middle, std::uint64_t turn);
  void spread(const Ways& ways, const Middle& middle);
  [[noreturn]] void fail(int from_rank, int to_rank) const;

  const Topology& topology_;
  RouteChoice choice_;
  ShortestWays ways_;
  std::vector<int> network_;  // by device without a rank: number of its network
  std::optional<Exits> exits_;
  std::optional<Siblings> siblings_;
  std::vector<Ways> known_;     // a cache: pairs come in the order of ranks
  std::vector<Chosen> chosen_;  // a cache with one slot per place
  std::vector<int> place_;      // by device, while paths are collected
  std::vector<double> load_;    // by place, while paths are spread
  std::vector<int> route_;
  std::vector<int> back_;  // the end of the route, from its last link back
  std::vector<double> shares_;
};

}  // namespace unisono
