#include "topology/topology.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/json_reader.h"
#include "base/words.h"

namespace unisono {
namespace {

constexpr std::array<std::string_view, 7> kKinds = {"node", "socket", "core", "gpu",
                                                    "nic",  "switch", "group"};

JsonProblem problem(const char* list, std::size_t index, std::string message) {
  return {std::move(message), std::string("/") + list + "/" + std::to_string(index)};
}

bool has_device(const Topology& topology, int device) {
  return device >= 0 && static_cast<std::size_t>(device) < topology.devices.size();
}

const std::string& name_of(const Topology& topology, int device) {
  return topology.devices[static_cast<std::size_t>(device)].name;
}

std::optional<JsonProblem> check_names(const Topology& topology) {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(topology.devices.size());
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const std::string& name = topology.devices[i].name;
    if (name.empty()) {
      return problem("devices", i, "the device has no name");
    }
    if (const auto [at, added] = seen.emplace(name, i); !added) {
      return problem("devices", i,
                     "the name " + in_quotes(name) + " is that of device " +
                         std::to_string(at->second) + " already");
    }
  }
  return std::nullopt;
}

// Walks up from every device, and marks the devices that lead out of all containers.
std::optional<JsonProblem> check_containment(const Topology& topology) {
  const std::size_t count = topology.devices.size();
  enum : std::uint8_t { unknown, on_way, good };
  std::vector<std::uint8_t> state(count, unknown);
  std::vector<std::size_t> way;
  for (std::size_t i = 0; i < count; ++i) {
    way.clear();
    std::size_t at = i;
    while (state[at] == unknown) {
      state[at] = on_way;
      way.push_back(at);
      const int inside = topology.devices[at].inside;
      if (inside < 0) {
        break;
      }
      if (!has_device(topology, inside)) {
        return problem("devices", at, "it is inside a device that does not exist");
      }
      at = static_cast<std::size_t>(inside);
      if (state[at] == on_way) {
        return problem("devices", at,
                       in_quotes(topology.devices[at].name) + " is inside itself, through " +
                           in_quotes(topology.devices[way.back()].name));
      }
    }
    for (const std::size_t device : way) {
      state[device] = good;
    }
  }
  return std::nullopt;
}

std::optional<JsonProblem> check_links(const Topology& topology) {
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    if (!has_device(topology, link.from) || !has_device(topology, link.to)) {
      return problem("links", i, "it ends at a device that does not exist");
    }
    if (link.from == link.to) {
      return problem("links", i,
                     "both ends are " + in_quotes(name_of(topology, link.from)) +
                         "; a link joins two devices");
    }
    if (!(link.bytes_per_us > 0) || !std::isfinite(link.bytes_per_us)) {
      return problem("links", i,
                     "the bandwidth from " + in_quotes(name_of(topology, link.from)) + " to " +
                         in_quotes(name_of(topology, link.to)) + " must be above zero");
    }
    if (!(link.latency_us >= 0) || !std::isfinite(link.latency_us)) {
      return problem("links", i, "the latency must be zero or more");
    }
  }
  return std::nullopt;
}

std::optional<JsonProblem> check_ranks(const Topology& topology) {
  if (topology.ranks.empty()) {
    return JsonProblem{"there are no ranks", "/ranks"};
  }
  if (topology.ranks.size() > static_cast<std::size_t>(kMostTopologyRanks)) {
    return JsonProblem{std::to_string(topology.ranks.size()) + " ranks are more than the " +
                           std::to_string(kMostTopologyRanks) + " that a topology can have",
                       "/ranks"};
  }
  std::vector<int> rank_on(topology.devices.size(), -1);
  for (std::size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    const int device = topology.ranks[rank];
    if (!has_device(topology, device)) {
      return problem("ranks", rank, "rank " + std::to_string(rank) + " has no device");
    }
    int& other = rank_on[static_cast<std::size_t>(device)];
    if (other >= 0) {
      return problem("ranks", rank,
                     in_quotes(name_of(topology, device)) + " has rank " + std::to_string(other) +
                         " already; a device has one rank");
    }
    other = static_cast<int>(rank);
  }
  return std::nullopt;
}

// Returns the devices that rank 0 reaches without passing through another rank.
std::vector<bool> reached_from_first(const Topology& topology, bool reversed) {
  const LinksOut out(topology, reversed);
  std::vector<bool> has_rank(topology.devices.size());
  for (const int device : topology.ranks) {
    has_rank[static_cast<std::size_t>(device)] = true;
  }
  std::vector<bool> reached(topology.devices.size());
  std::vector<int> open = {topology.ranks.front()};
  reached[static_cast<std::size_t>(open.front())] = true;
  while (!open.empty()) {
    const int device = open.back();
    open.pop_back();
    if (has_rank[static_cast<std::size_t>(device)] && device != topology.ranks.front()) {
      continue;
    }
    for (const int index : out.of(device)) {
      const Link& link = topology.links[static_cast<std::size_t>(index)];
      const int next = reversed ? link.from : link.to;
      if (!reached[static_cast<std::size_t>(next)]) {
        reached[static_cast<std::size_t>(next)] = true;
        open.push_back(next);
      }
    }
  }
  return reached;
}

std::optional<JsonProblem> check_reach(const Topology& topology) {
  for (const bool reversed : {false, true}) {
    const std::vector<bool> reached = reached_from_first(topology, reversed);
    for (std::size_t rank = 0; rank < topology.ranks.size(); ++rank) {
      const int device = topology.ranks[rank];
      if (!reached[static_cast<std::size_t>(device)]) {
        const std::string first = "rank 0 (" + name_of(topology, topology.ranks.front()) + ")";
        const std::string other =
            "rank " + std::to_string(rank) + " (" + name_of(topology, device) + ")";
        return problem("ranks", rank,
                       "no links lead from " + (reversed ? other : first) + " to " +
                           (reversed ? first : other));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(DeviceKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<DeviceKind> parse_device_kind(std::string_view text) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), text);
  if (found == kKinds.end()) {
    return std::nullopt;
  }
  return static_cast<DeviceKind>(found - kKinds.begin());
}

int add_device(Topology& topology, std::string name, DeviceKind kind, int inside) {
  topology.devices.push_back({.name = std::move(name), .kind = kind, .inside = inside});
  return static_cast<int>(topology.devices.size()) - 1;
}

void connect(Topology& topology, int a, int b, double latency_us, double bytes_per_us) {
  const int first = static_cast<int>(topology.links.size());
  topology.links.push_back({.from = a,
                            .to = b,
                            .latency_us = latency_us,
                            .bytes_per_us = bytes_per_us,
                            .reverse = first + 1});
  topology.links.push_back({.from = b,
                            .to = a,
                            .latency_us = latency_us,
                            .bytes_per_us = bytes_per_us,
                            .reverse = first});
}

LinksOut::LinksOut(const Topology& topology, bool reversed)
    : first_(topology.devices.size() + 1), links_(topology.links.size()) {
  const auto tail = [reversed](const Link& link) {
    return static_cast<std::size_t>(reversed ? link.to : link.from);
  };
  for (const Link& link : topology.links) {
    ++first_[tail(link) + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) {
    first_[i] += first_[i - 1];
  }
  std::vector<int> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    links_[static_cast<std::size_t>(next[tail(topology.links[i])]++)] = static_cast<int>(i);
  }
}

std::optional<JsonProblem> check(const Topology& topology) {
  for (const auto part : {check_names, check_containment, check_links, check_ranks, check_reach}) {
    if (std::optional<JsonProblem> found = part(topology)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace unisono
