#include "topology/routes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/hash.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// Numbers the networks: devices that links join without passing through a device with a rank have
// the same number.
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

Router::Router(const Topology& topology, RouteChoice choice, bool knows_parts)
    : topology_(topology),
      choice_(choice),
      ways_(topology),
      network_(networks_of(topology)),
      known_(1024),
      chosen_(choice == RouteChoice::fixed ? std::min(kMostChosen, 64 * topology.ranks.size()) : 0),
      place_(topology.devices.size(), -1) {
  if (knows_parts) {
    exits_.emplace(topology, ways_.out(), ways_.in(), network_);
    siblings_.emplace(topology, ways_.out(), ways_.in());
  }
}

// Returns true if a path to the goal may lead through `device`, which is not the goal.
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

// Returns the only link from (backward: to) `device` that can be on a path to (from) the goal; -1
// if there is none, or several.
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

// Extends the route from both ends as long as there is no choice.
void Router::approach(int& source, int& target) {
  constexpr std::size_t kMost = 8;  // a path without an end may go in circles
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
    }
  }
}

// Begins the route at both ends; returns true if they meet.
bool Router::find_ends(int from_rank, int to_rank, Middle& middle) {
  Exits::Ends ends{.route = route_, .back = back_};
  if (exits_ && exits_->find(from_rank, to_rank, ends)) {
    middle = {.source = ends.source, .target = ends.target, .width = ends.width};
    return middle.source == middle.target;
  }
  approach(middle.source, middle.target);
  for (const std::vector<int>* links : {&route_, &back_}) {
    for (const int link : *links) {
      middle.width = std::min(middle.width, topology_.links[at(link)].bytes_per_us);
    }
  }
  return middle.source == middle.target;
}

const std::vector<int>& Router::route(int from_rank, int to_rank) {
  route_.clear();
  back_.clear();
  shares_.clear();
  if (from_rank == to_rank) {
    return route_;
  }
  Middle middle{.source = topology_.ranks[at(from_rank)],
                .target = topology_.ranks[at(to_rank)],
                .width = std::numeric_limits<double>::infinity()};
  if (!find_ends(from_rank, to_rank, middle) && !add_middle(from_rank, to_rank, middle)) {
    fail(from_rank, to_rank);
  }
  route_.insert(route_.end(), back_.rbegin(), back_.rend());
  if (choice_ == RouteChoice::adaptive) {
    shares_.resize(route_.size(), 1);
  }
  return route_;
}

// Returns false if there is no path.
bool Router::add_middle(int from_rank, int to_rank, const Middle& middle) {
  if (choice_ == RouteChoice::fixed) {
    return add_fixed(middle, back_.empty() ? 0 : ways_.port(back_.back()));
  }
  const Ways& ways = ways_of(middle);
  if (ways.places.empty()) {
    return false;
  }
  if (choice_ == RouteChoice::adaptive) {
    spread(ways, middle);
  } else {
    choose_one(ways, middle,
               Hash()
                   .add(static_cast<std::uint64_t>(from_rank))
                   .add(static_cast<std::uint64_t>(to_rank))
                   .value());
  }
  return true;
}

bool Router::add_fixed(const Middle& middle, int turn) {
  Chosen& known =
      chosen_[(mix(pair_of(middle)) + static_cast<std::uint64_t>(turn)) % chosen_.size()];
  if (known.middle == middle && known.turn == turn) {
    route_.insert(route_.end(), known.links.begin(), known.links.begin() + known.count);
    return true;
  }
  const Ways& ways = ways_of(middle);
  if (ways.places.empty()) {
    return false;
  }
  const std::size_t before = route_.size();
  choose_one(ways, middle, static_cast<std::uint64_t>(turn));
  if (route_.size() - before <= known.links.size()) {
    known = {.middle = middle, .turn = turn, .count = static_cast<int>(route_.size() - before)};
    std::copy(route_.begin() + static_cast<std::ptrdiff_t>(before), route_.end(),
              known.links.begin());
  }
  return true;
}

// Returns the paths of the pair that represents this one.
const Router::Ways& Router::ways_of(Middle middle) {
  if (siblings_) {
    const auto [source, target] =
        siblings_->stand_in({.source = middle.source, .target = middle.target});
    middle.source = source;
    middle.target = target;
  }
  // A pair has a few slots, so that alternating pairs do not evict each other.
  constexpr std::size_t kPlaces = 4;
  const auto first =
      known_.begin() +
      static_cast<std::ptrdiff_t>(mix(pair_of(middle)) % (known_.size() / kPlaces) * kPlaces);
  const auto end = first + kPlaces;
  const auto found =
      std::find_if(first, end, [&](const Ways& ways) { return ways.middle == middle; });
  if (found != end) {
    return *found;
  }
  std::rotate(first, end - 1, end);
  Ways& ways = *first;
  ways.middle = middle;
  ways.places.clear();
  ways.steps.clear();
  if (!ways_.find(middle.source, middle.target)) {
    return ways;
  }
  ways.places.push_back({.device = middle.target});
  for (std::size_t i = 0; i < ways.places.size(); ++i) {
    const int device = ways.places[i].device;
    ways.places[i].first = ways.steps.size();
    if (device == middle.source) {
      continue;
    }
    for (const int link : ways_.before(device, middle.width)) {
      const int from = topology_.links[at(link)].from;
      if (place_[at(from)] < 0) {
        place_[at(from)] = static_cast<int>(ways.places.size());
        ways.places.push_back({.device = from});
      }
      ways.steps.push_back({.link = link, .from = at(place_[at(from)])});
    }
    ways.places[i].count = ways.steps.size() - ways.places[i].first;
  }
  for (const Ways::Place& place : ways.places) {
    place_[at(place.device)] = -1;
  }
  return ways;
}

// Returns the link between the actual devices that corresponds to a link of the paths.
int Router::own_link(const Ways& ways, const Middle& middle, int link) const {
  if (ways.middle == middle) {
    return link;
  }
  const bool is_last = topology_.links[at(link)].to == ways.middle.target;
  if (topology_.links[at(link)].from == ways.middle.source) {
    link = siblings_->link_from(middle.source, link);
  }
  return is_last ? siblings_->link_to(middle.target, link) : link;
}

void Router::choose_one(const Ways& ways, const Middle& middle, std::uint64_t turn) {
  const auto before = static_cast<std::ptrdiff_t>(route_.size());
  const Ways::Place* place = ways.places.data();
  while (place->count > 0) {
    const Ways::Step& chosen = ways.steps[place->first + turn % place->count];
    const int link = own_link(ways, middle, chosen.link);
    // Chooses by the port through which the route continues from there.
    turn = choice_ == RouteChoice::fixed
               ? static_cast<std::uint64_t>(ways_.port(link))
               : mix(turn + static_cast<std::uint64_t>(topology_.links[at(link)].to));
    route_.push_back(link);
    place = &ways.places[chosen.from];
  }
  std::reverse(route_.begin() + before, route_.end());
}

// Each place splits its incoming load evenly over the links that continue from it.
void Router::spread(const Ways& ways, const Middle& middle) {
  shares_.assign(route_.size(), 1);
  std::vector<int> ways_on(ways.places.size());
  for (const Ways::Step& step : ways.steps) {
    ++ways_on[step.from];
  }
  load_.assign(ways.places.size(), 0);
  for (std::size_t i = ways.places.size(); i-- > 0;) {
    const Ways::Place& place = ways.places[i];
    load_[i] = place.count == 0 ? 1 : 0;  // all load starts at the source
    for (std::size_t k = place.first; k < place.first + place.count; ++k) {
      const Ways::Step& step = ways.steps[k];
      const double share = load_[step.from] / ways_on[step.from];
      load_[i] += share;
      route_.push_back(own_link(ways, middle, step.link));
      shares_.push_back(share);
    }
  }
}

void Router::fail(int from_rank, int to_rank) const {
  const auto name = [this](int rank) {
    return "rank " + std::to_string(rank) + " (" +
           topology_.devices[at(topology_.ranks[at(rank)])].name + ")";
  };
  throw Error(ErrorCode::usage, "there is no route from " + name(from_rank) + " to " +
                                    name(to_rank) +
                                    "\nroutes follow links one way, and do not pass through "
                                    "devices that have a rank");
}

}  // namespace unisono
