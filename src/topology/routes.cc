#include "topology/routes.h"

#include <algorithm>
#include <limits>
#include <string>

#include "unisono/error.hpp"

namespace unisono {

Router::Router(const Topology& topology)
    : topology_(topology),
      out_(topology),
      in_(topology, true),
      has_rank_(topology.devices.size()),
      port_(topology.links.size()),
      marks_(topology.devices.size()) {
  forward_.labels.resize(topology.devices.size());
  backward_.labels.resize(topology.devices.size());
  for (const int device : topology.ranks) {
    has_rank_[static_cast<std::size_t>(device)] = true;
  }
  for (std::size_t device = 0; device < topology.devices.size(); ++device) {
    int port = 0;
    for (const int link : out_.of(static_cast<int>(device))) {
      port_[static_cast<std::size_t>(link)] = port++;
    }
  }
}

int Router::other_end(int link, bool backward) const {
  const Link& found = topology_.links[static_cast<std::size_t>(link)];
  return backward ? found.from : found.to;
}

void Router::start(End& end, int device) {
  end.order.assign(1, device);
  end.links.clear();
  end.level_begin = 0;
  end.labels[static_cast<std::size_t>(device)] = {.search = search_, .distance = 0};
  const LinksOut& links = &end == &forward_ ? out_ : in_;
  end.edges_ahead = links.of(device).size();
}

bool Router::advance(End& end, const LinksOut& links, bool backward, int target) {
  const std::size_t level_end = end.order.size();
  end.edges_ahead = 0;
  for (std::size_t i = end.level_begin; i < level_end; ++i) {
    const int device = end.order[i];
    const int distance = end.labels[static_cast<std::size_t>(device)].distance + 1;
    for (const int link : links.of(device)) {
      const int next = other_end(link, backward);
      Label& label = end.labels[static_cast<std::size_t>(next)];
      const bool is_new = label.search != search_;
      if (is_new) {
        label = {.search = search_, .distance = distance};
      }
      const bool dead_end = has_rank_[static_cast<std::size_t>(next)] && next != target;
      if (dead_end || label.distance != distance) {
        continue;
      }
      end.links.push_back(link);
      if (is_new) {
        end.order.push_back(next);
        end.edges_ahead += links.of(next).size();
      }
    }
  }
  end.level_begin = level_end;
  return end.order.size() > level_end;
}

// Searches until the shortest distance is certain; returns it, -1 if there is no way.
int Router::meet() {
  const int source = forward_.order.front();
  const int target = backward_.order.front();
  int depth = 0;
  while (true) {
    const bool from_source = forward_.edges_ahead <= backward_.edges_ahead;
    End& end = from_source ? forward_ : backward_;
    const End& other = from_source ? backward_ : forward_;
    if (!advance(end, from_source ? out_ : in_, !from_source, from_source ? target : source)) {
      return -1;
    }
    ++depth;
    for (std::size_t i = end.level_begin; i < end.order.size(); ++i) {
      if (is_labelled(other, end.order[i])) {
        return depth;
      }
    }
  }
}

void Router::mark(int device, int distance) {
  Mark& found = marks_[static_cast<std::size_t>(device)];
  if (found.search != search_) {
    found = {.search = search_, .distance = distance, .width = 0};
  }
}

void Router::widen(const Link& link) {
  const Mark& before = marks_[static_cast<std::size_t>(link.from)];
  Mark& here = marks_[static_cast<std::size_t>(link.to)];
  here.width = std::max(here.width, std::min(before.width, link.bytes_per_us));
}

// Marks every device on a shortest path with its distance and width from the source: where both
// searches have met, and all that the links lead to by which they came there. Only these links are
// looked at: a switch where they meet may have many others.
void Router::mark_paths(int source) {
  for (std::size_t i = forward_.level_begin; i < forward_.order.size(); ++i) {
    const int device = forward_.order[i];
    if (is_labelled(backward_, device)) {
      mark(device, forward_.labels[static_cast<std::size_t>(device)].distance);
    }
  }
  const auto link_of = [this](int link) -> const Link& {
    return topology_.links[static_cast<std::size_t>(link)];
  };
  for (auto link = forward_.links.rbegin(); link != forward_.links.rend(); ++link) {
    const Link& found = link_of(*link);
    if (is_marked(found.to)) {
      mark(found.from, marks_[static_cast<std::size_t>(found.to)].distance - 1);
    }
  }
  marks_[static_cast<std::size_t>(source)].width = std::numeric_limits<double>::infinity();
  for (const int link : forward_.links) {
    if (is_marked(link_of(link).to)) {
      widen(link_of(link));
    }
  }
  for (auto link = backward_.links.rbegin(); link != backward_.links.rend(); ++link) {
    const Link& found = link_of(*link);
    if (is_marked(found.from)) {
      mark(found.to, marks_[static_cast<std::size_t>(found.from)].distance + 1);
      widen(found);
    }
  }
}

void Router::walk_back(int source, int target) {
  const double width = marks_[static_cast<std::size_t>(target)].width;
  int device = target;
  std::size_t port = 0;  // by which the path goes on from `device`
  while (device != source) {
    const int distance = marks_[static_cast<std::size_t>(device)].distance;
    candidates_.clear();
    for (const int link : in_.of(device)) {
      const Mark& before = marks_[static_cast<std::size_t>(other_end(link, true))];
      if (before.search == search_ && before.distance == distance - 1 &&
          std::min(before.width, topology_.links[static_cast<std::size_t>(link)].bytes_per_us) >=
              width) {
        candidates_.push_back(link);
      }
    }
    const int chosen = candidates_[port % candidates_.size()];
    port = static_cast<std::size_t>(port_[static_cast<std::size_t>(chosen)]);
    route_.push_back(chosen);
    device = other_end(chosen, true);
  }
  std::reverse(route_.begin(), route_.end());
}

const std::vector<int>& Router::route(int from_rank, int to_rank) {
  route_.clear();
  if (from_rank == to_rank) {
    return route_;
  }
  const int source = topology_.ranks[static_cast<std::size_t>(from_rank)];
  const int target = topology_.ranks[static_cast<std::size_t>(to_rank)];
  ++search_;
  start(forward_, source);
  start(backward_, target);
  const int distance = meet();
  if (distance < 0) {
    const auto name = [this](int rank, int device) {
      return "rank " + std::to_string(rank) + " (" +
             topology_.devices[static_cast<std::size_t>(device)].name + ")";
    };
    throw Error(ErrorCode::usage, "no route leads from " + name(from_rank, source) + " to " +
                                      name(to_rank, target) +
                                      "\nroutes follow links one way, and do not pass through "
                                      "devices that have a rank");
  }
  mark_paths(source);
  walk_back(source, target);
  return route_;
}

}  // namespace unisono
