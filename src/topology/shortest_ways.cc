#include "topology/shortest_ways.h"

#include <algorithm>
#include <limits>

namespace unisono {

ShortestWays::ShortestWays(const Topology& topology)
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

int ShortestWays::other_end(int link, bool backward) const {
  const Link& found = topology_.links[static_cast<std::size_t>(link)];
  return backward ? found.from : found.to;
}

void ShortestWays::start(End& end, int device) {
  end.order.assign(1, device);
  end.links.clear();
  end.level_begin = 0;
  end.labels[static_cast<std::size_t>(device)] = {.search = search_, .distance = 0};
  const LinksOut& links = &end == &forward_ ? out_ : in_;
  end.edges_ahead = links.of(device).size();
}

bool ShortestWays::advance(End& end, const LinksOut& links, bool backward, int target) {
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

// Searches until the shortest distance is certain; returns false if there is no path.
bool ShortestWays::meet() {
  const int source = forward_.order.front();
  const int target = backward_.order.front();
  while (true) {
    const bool from_source = forward_.edges_ahead <= backward_.edges_ahead;
    End& end = from_source ? forward_ : backward_;
    const End& other = from_source ? backward_ : forward_;
    if (!advance(end, from_source ? out_ : in_, !from_source, from_source ? target : source)) {
      return false;
    }
    for (std::size_t i = end.level_begin; i < end.order.size(); ++i) {
      if (is_labelled(other, end.order[i])) {
        return true;
      }
    }
  }
}

void ShortestWays::mark(int device, int distance) {
  Mark& found = marks_[static_cast<std::size_t>(device)];
  if (found.search != search_) {
    found = {.search = search_, .distance = distance, .width = 0};
  }
}

void ShortestWays::add_way(int link) {
  const Link& found = topology_.links[static_cast<std::size_t>(link)];
  const Mark& before = marks_[static_cast<std::size_t>(found.from)];
  Mark& here = marks_[static_cast<std::size_t>(found.to)];
  here.width = std::max(here.width, std::min(before.width, found.bytes_per_us));
  links_on_paths_.push_back({.link = link, .before = here.last_way});
  here.last_way = static_cast<int>(links_on_paths_.size()) - 1;
}

// Marks every device on a shortest path with its distance and width from the source. Starts with
// the devices where both searches met, and follows the links by which the searches reached them.
// Examines only these links, because a switch where the searches meet may have many others.
void ShortestWays::mark_paths(int source) {
  links_on_paths_.clear();
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
      add_way(link);
    }
  }
  for (auto link = backward_.links.rbegin(); link != backward_.links.rend(); ++link) {
    const Link& found = link_of(*link);
    if (is_marked(found.from)) {
      mark(found.to, marks_[static_cast<std::size_t>(found.from)].distance + 1);
      add_way(*link);
    }
  }
}

bool ShortestWays::find(int source, int target) {
  ++search_;
  start(forward_, source);
  start(backward_, target);
  if (!meet()) {
    return false;
  }
  mark_paths(source);
  return true;
}

const std::vector<int>& ShortestWays::before(int device, double enough) {
  const int target = backward_.order.front();
  const double width = std::min(enough, marks_[static_cast<std::size_t>(target)].width);
  candidates_.clear();
  for (int way = marks_[static_cast<std::size_t>(device)].last_way; way >= 0;
       way = links_on_paths_[static_cast<std::size_t>(way)].before) {
    const int link = links_on_paths_[static_cast<std::size_t>(way)].link;
    const Link& found = topology_.links[static_cast<std::size_t>(link)];
    if (std::min(marks_[static_cast<std::size_t>(found.from)].width, found.bytes_per_us) >= width) {
      candidates_.push_back(link);
    }
  }
  std::sort(candidates_.begin(), candidates_.end());
  return candidates_;
}

}  // namespace unisono
