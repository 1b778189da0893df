// Routes between ranks: shortest paths, found when asked for.
//
// A route has the fewest links; among those the widest (the largest bandwidth of its narrowest
// link). It passes through no device that has a rank. Where several remain, RouteChoice says which.
// The same pair has the same route every time.
//
// There is no table of all pairs. Most of what leads from a rank into a network can go only one way
// (a host, its NIC, its first switch); what lies between two switches is searched for once and kept
// (shortest_ways.h), since it is the same for all ranks behind them.
//
// Zahavi et al., D-mod-k routing providing non-blocking traffic for shift permutations on real life
// fat trees, 2010.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topology/shortest_ways.h"
#include "topology/topology.h"

namespace unisono {

enum class RouteChoice : std::uint8_t {
  // By the destination alone: at each switch the port that leads down to it, as in the static
  // routing of fat trees (D-mod-k). Ranks behind one switch that all send by the same distance
  // share no link.
  fixed,
  // By a hash of both ranks, as Ethernet switches choose among equal costs.
  hashed,
  // All of them: every switch splits what goes to one rank evenly over the links that lead there,
  // as switches do that choose for each packet the port with the least to do.
  spread
};

// Keeps a reference to the topology. One thread at a time uses a router.
class Router {
 public:
  explicit Router(const Topology& topology, RouteChoice choice = RouteChoice::fixed);

  // The links from the device of one rank to that of another, in order; empty for from == to. Where
  // they are spread, all links of all ways.
  // Errors: Error(usage) if no links lead there.
  const std::vector<int>& route(int from_rank, int to_rank);
  // Of the last route: which part of the bytes goes over each link; empty: all over all.
  const std::vector<double>& shares() const { return shares_; }

 private:
  // Of all routes between two devices: by which links they come to the second one.
  struct Leg {
    int source = 0;
    int device = 0;
    double width = 0;  // of the rest of the route
    bool operator==(const Leg&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Leg& leg) const;
  };
  struct Last {
    std::size_t first = 0;  // in known_links_
    std::size_t count = 0;
    double width = 0;  // of the widest way
  };

  int only_way(int device, int goal, int came_from, bool backward) const;
  bool leads_to(int device, int goal, bool backward) const;
  bool approach(int& source, int& target, double& width);
  std::span<const int> links_before(Leg& leg);
  bool choose_one(Leg leg, std::uint64_t turn);
  bool spread(const Leg& leg);
  [[noreturn]] void fail(int from_rank, int to_rank) const;

  const Topology& topology_;
  RouteChoice choice_;
  ShortestWays ways_;
  std::vector<int> network_;  // of a device without a rank: which of the parts that ranks join
  std::unordered_map<Leg, Last, Hash> known_;
  std::vector<int> known_links_;
  std::vector<double> load_;  // of devices, while spreading
  std::vector<int> ways_out_;
  std::vector<int> route_;
  std::vector<int> back_;  // the end of the route, from its last link
  std::vector<double> shares_;
};

}  // namespace unisono
