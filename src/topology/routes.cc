#include "topology/routes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>

#include "unisono/error.hpp"

namespace unisono {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// SplitMix64 (Steele, Lea, Flood, 2014).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// Devices that links join without passing through one that has a rank have the same number.
std::vector<int> networks_of(const Topology& topology) {
  std::vector<int> above(topology.devices.size());
  std::iota(above.begin(), above.end(), 0);
  const auto top = [&above](int device) {
    while (above[at(device)] != device) {
      above[at(device)] = above[at(above[at(device)])];
      device = above[at(device)];
    }
    return device;
  };
  std::vector<bool> has_rank(topology.devices.size());
  for (const int device : topology.ranks) {
    has_rank[at(device)] = true;
  }
  for (const Link& link : topology.links) {
    if (!has_rank[at(link.from)] && !has_rank[at(link.to)]) {
      above[at(top(link.from))] = top(link.to);
    }
  }
  for (std::size_t i = 0; i < above.size(); ++i) {
    above[i] = top(static_cast<int>(i));
  }
  return above;
}

}  // namespace

std::size_t Router::Hash::operator()(const Leg& leg) const {
  const auto pair = static_cast<std::uint64_t>(static_cast<std::uint32_t>(leg.source)) << 32U |
                    static_cast<std::uint32_t>(leg.device);
  return mix(mix(pair) ^ std::bit_cast<std::uint64_t>(leg.width));
}

Router::Router(const Topology& topology, RouteChoice choice)
    : topology_(topology), choice_(choice), ways_(topology), network_(networks_of(topology)) {
  if (choice == RouteChoice::spread) {
    load_.resize(topology.devices.size());
    ways_out_.resize(topology.devices.size());
  }
}

// Whether a way may lead to the goal through `device`, which is not the goal.
bool Router::leads_to(int device, int goal, bool backward) const {
  if (ways_.has_rank(device)) {
    return false;
  }
  if (!ways_.has_rank(goal)) {
    return network_[at(device)] == network_[at(goal)];
  }
  const auto links = (backward ? ways_.out() : ways_.in()).of(goal);
  return std::any_of(links.begin(), links.end(), [&](int link) {
    const Link& found = topology_.links[at(link)];
    const int next = backward ? found.to : found.from;
    return !ways_.has_rank(next) && network_[at(next)] == network_[at(device)];
  });
}

// The only link from (backward: to) `device` that can be on a way to (from) the goal; -1: there is
// none, or there are several.
int Router::only_way(int device, int goal, int came_from, bool backward) const {
  int only = -1;
  for (const int link : (backward ? ways_.in() : ways_.out()).of(device)) {
    const Link& found = topology_.links[at(link)];
    const int next = backward ? found.from : found.to;
    if (next == came_from || (next != goal && !leads_to(next, goal, backward))) {
      continue;
    }
    if (only >= 0) {
      return -1;
    }
    only = link;
  }
  return only;
}

// Goes on from both ends as long as there is no choice; false once there is one.
bool Router::approach(int& source, int& target, double& width) {
  constexpr std::size_t kMost = 8;  // ways without an end may go round in circles
  int before = -1;
  int after = -1;
  for (bool moves = true; moves && source != target;) {
    moves = false;
    const int out = route_.size() < kMost ? only_way(source, target, before, false) : -1;
    if (out >= 0) {
      moves = true;
      route_.push_back(out);
      before = source;
      source = topology_.links[at(out)].to;
      width = std::min(width, topology_.links[at(out)].bytes_per_us);
    }
    if (source == target) {
      break;
    }
    const int in = back_.size() < kMost ? only_way(target, source, after, true) : -1;
    if (in >= 0) {
      moves = true;
      back_.push_back(in);
      after = target;
      target = topology_.links[at(in)].from;
      width = std::min(width, topology_.links[at(in)].bytes_per_us);
    }
  }
  return source == target;
}

const std::vector<int>& Router::route(int from_rank, int to_rank) {
  route_.clear();
  back_.clear();
  shares_.clear();
  if (from_rank == to_rank) {
    return route_;
  }
  Leg leg{.source = topology_.ranks[at(from_rank)],
          .device = topology_.ranks[at(to_rank)],
          .width = std::numeric_limits<double>::infinity()};
  if (!approach(leg.source, leg.device, leg.width)) {
    const std::uint64_t turn =
        choice_ == RouteChoice::hashed
            ? mix(mix(static_cast<std::uint64_t>(from_rank)) + static_cast<std::uint64_t>(to_rank))
        : back_.empty() ? 0
                        : static_cast<std::uint64_t>(ways_.port(back_.back()));
    const std::size_t before = route_.size();
    if (choice_ == RouteChoice::spread) {
      shares_.assign(before, 1);
    }
    if (!(choice_ == RouteChoice::spread ? spread(leg) : choose_one(leg, turn))) {
      fail(from_rank, to_rank);
    }
    std::reverse(route_.begin() + static_cast<std::ptrdiff_t>(before), route_.end());
  }
  route_.insert(route_.end(), back_.rbegin(), back_.rend());
  if (!shares_.empty()) {
    shares_.resize(route_.size(), 1);
  }
  return route_;
}

// None: there is no way. Narrows the leg to what its ways can have.
std::span<const int> Router::links_before(Leg& leg) {
  const auto [place, added] = known_.try_emplace(leg);
  Last& last = place->second;
  if (added && ways_.find(leg.source, leg.device)) {
    const std::vector<int>& links = ways_.before(leg.device, leg.width);
    last = {.first = known_links_.size(), .count = links.size(), .width = ways_.width()};
    known_links_.insert(known_links_.end(), links.begin(), links.end());
  }
  leg.width = std::min(leg.width, last.width);
  return std::span(known_links_).subspan(last.first, last.count);
}

// Appends the links from the last one to the first; false: there is no way.
bool Router::choose_one(Leg leg, std::uint64_t turn) {
  // What begins or ends at a rank is not asked for again: it is searched for as a whole.
  const bool keeps = !ways_.has_rank(leg.source) && !ways_.has_rank(leg.device);
  if (!keeps && !ways_.find(leg.source, leg.device)) {
    return false;
  }
  while (leg.device != leg.source) {
    const std::span<const int> links =
        keeps ? links_before(leg) : std::span<const int>(ways_.before(leg.device, leg.width));
    if (links.empty()) {
      return false;
    }
    const int chosen = links[turn % links.size()];
    // By the port with which the route goes on from there.
    turn = choice_ == RouteChoice::fixed ? static_cast<std::uint64_t>(ways_.port(chosen))
                                         : mix(turn + static_cast<std::uint64_t>(leg.device));
    route_.push_back(chosen);
    leg.device = topology_.links[at(chosen)].from;
  }
  return true;
}

// Likewise, all links of all ways, and their shares.
bool Router::spread(const Leg& leg) {
  if (!ways_.find(leg.source, leg.device)) {
    return false;
  }
  const auto first = static_cast<std::ptrdiff_t>(route_.size());
  std::vector<int> devices = {leg.device};
  load_[at(leg.device)] = 1;  // it was met
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == leg.source) {
      continue;
    }
    for (const int link : ways_.before(devices[i], leg.width)) {
      const int from = topology_.links[at(link)].from;
      route_.push_back(link);
      ++ways_out_[at(from)];
      if (load_[at(from)] == 0) {
        load_[at(from)] = 1;
        devices.push_back(from);
      }
    }
  }
  for (const int device : devices) {
    load_[at(device)] = device == leg.source ? 1 : 0;
  }
  shares_.resize(route_.size());
  for (auto i = route_.size(); i-- > static_cast<std::size_t>(first);) {
    const Link& link = topology_.links[at(route_[i])];
    shares_[i] = load_[at(link.from)] / ways_out_[at(link.from)];
    load_[at(link.to)] += shares_[i];
  }
  std::reverse(shares_.begin() + first, shares_.end());
  for (const int device : devices) {
    load_[at(device)] = 0;
    ways_out_[at(device)] = 0;
  }
  return true;
}

void Router::fail(int from_rank, int to_rank) const {
  const auto name = [this](int rank) {
    return "rank " + std::to_string(rank) + " (" +
           topology_.devices[at(topology_.ranks[at(rank)])].name + ")";
  };
  throw Error(ErrorCode::usage, "no route leads from " + name(from_rank) + " to " + name(to_rank) +
                                    "\nroutes follow links one way, and do not pass through "
                                    "devices that have a rank");
}

}  // namespace unisono
