// Routes between ranks: shortest paths, found when asked for.
//
// A route has the fewest links; among those the widest (the largest bandwidth of its narrowest
// link). It passes through no device that has a rank. Where several remain, RouteChoice says which.
// The same pair has the same route every time.
//
// There is no table of all pairs. Most of what leads from a rank into a network can go only one way
// (a host, its NIC, its first switch: exits.h); what lies between two switches is searched for once
// (shortest_ways.h) and kept for a while, since it is the same for all ranks behind them, and but
// for its ends also for their siblings (siblings.h).
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
  // The destination alone decides: at each switch the port that leads down to it, as in the static
  // routing of fat trees (D-mod-k). Ranks behind one switch that all send by the same distance
  // share no link.
  fixed,
  // A hash of both ranks decides, as Ethernet switches choose among equal costs.
  hashed,
  // All of them: every switch splits what goes to one rank evenly over the links that lead there,
  // as switches do that choose for each packet the port with the least to do.
  adaptive
};

// Keeps a reference to the topology. One thread at a time uses a router.
class Router {
 public:
  explicit Router(const Topology& topology, RouteChoice choice = RouteChoice::fixed)
      : Router(topology, choice, true) {}
  // Searches for the ways of each pair of ranks: what exits and siblings must not change.
  static Router searching(const Topology& topology, RouteChoice choice) {
    return Router(topology, choice, false);
  }

  // The links from the device of one rank to that of another, in order; empty for from == to. With
  // adaptive routes, all links of all ways.
  // Errors: Error(usage) if no links lead there.
  const std::vector<int>& route(int from_rank, int to_rank);
  // Says which part of the bytes goes over each link of the last route; empty: all over all.
  const std::vector<double>& shares() const { return shares_; }

 private:
  Router(const Topology& topology, RouteChoice choice, bool knows_parts);

  // The part of a route on which there is a choice.
  struct Middle {
    int source = -1;
    int target = -1;
    double width = 0;  // of the rest of the route
    bool operator==(const Middle&) const = default;
  };
  // All ways between two devices, from the target to the source.
  struct Ways {
    struct Place {
      int device = 0;
      std::size_t first = 0;  // of its steps
      std::size_t count = 0;
    };
    struct Step {
      int link = 0;
      std::size_t from = 0;  // a place
    };
    Middle middle = {};
    std::vector<Place> places = {};  // the target first; none: there is no way
    std::vector<Step> steps = {};
  };

  // The choice for a turn, if only the target decides.
  struct Chosen {
    Middle middle = {};
    int turn = 0;
    int count = 0;
    std::array<int, 4> links = {};
  };
  // In a fabric with thousands of ranks they are what messages ask for that are close to each other
  // in the steps of an all_to_all.
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
  std::vector<int> network_;  // of a device without a rank: which of the parts that ranks join
  std::optional<Exits> exits_;
  std::optional<Siblings> siblings_;
  std::vector<Ways> known_;     // those asked for last: pairs come in the order of ranks
  std::vector<Chosen> chosen_;  // likewise, one for each place
  std::vector<int> place_;      // of devices, while ways are collected
  std::vector<double> load_;    // of places, while ways are spread
  std::vector<int> route_;
  std::vector<int> back_;  // the end of the route, from its last link
  std::vector<double> shares_;
};

}  // namespace unisono
