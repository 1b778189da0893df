#include "network_model/in_switch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "network_model/simulator/simulate.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

constexpr double kToSeconds = 1e-6;
constexpr int kLeastRanks = 4;  // with fewer, direct messages are as fast

// The switch of a rank, and the links to it and back.
struct Port {
  int on = -1;
  double bytes_per_us = 0;  // of the narrower link, in reductions
  double latency_us = 0;    // sum of both links
};

std::vector<Port> ports_of(const Topology& topology, const LinksOut& links, int ranks) {
  std::vector<Port> ports(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < ports.size(); ++rank) {
    for (const int number : links.of(topology.ranks[rank])) {
      const Link& up = topology.links[static_cast<std::size_t>(number)];
      const double reduces = topology.devices[static_cast<std::size_t>(up.to)].reduces;
      if (reduces <= 0 || up.reverse < 0) {
        continue;
      }
      const Link& down = topology.links[static_cast<std::size_t>(up.reverse)];
      ports[rank] = {.on = up.to,
                     .bytes_per_us = reduces * std::min(up.bytes_per_us, down.bytes_per_us),
                     .latency_us = up.latency_us + down.latency_us};
    }
  }
  return ports;
}

// Returns the ranks per switch if all switches have the same number and the ranks come switch by
// switch; else 0.
int ranks_of_a_switch(const std::vector<Port>& ports) {
  const auto end = std::find_if(ports.begin(), ports.end(),
                                [&](const Port& port) { return port.on != ports.front().on; });
  const auto group = static_cast<std::size_t>(end - ports.begin());
  for (std::size_t rank = 0; rank < ports.size(); ++rank) {
    const bool is_same = rank % group != 0 && ports[rank].on == ports[rank - 1].on;
    const bool is_next = rank % group == 0 && (rank == 0 || ports[rank].on != ports[rank - 1].on);
    if (ports[rank].on < 0 || (!is_same && !is_next)) {
      return 0;
    }
  }
  return ports.size() % group == 0 ? static_cast<int>(group) : 0;
}

// Ranks with the same position behind all switches reduce their parts, for all positions at once.
std::optional<InSwitch> between_switches(int ranks, int group, double bytes,
                                         const Topology& topology, const InSwitchOptions& options) {
  const int switches = ranks / group;
  std::optional<InSwitch> best;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != Collective::all_reduce ||
        !can_serve(*algorithm, {.ranks = switches})) {
      continue;
    }
    try {
      Workload workload{.ranks = ranks};
      const WorkItem item = operation(*algorithm, {.ranks = switches}, bytes / group);
      for (int place = 0; place < group; ++place) {
        workload.items.push_back(item);
        for (int rank = place; rank < ranks; rank += group) {
          workload.items.back().ranks.push_back(rank);
        }
      }
      const SimulationResult simulated = simulate(workload, topology,
                                                  {.gamma_us_per_byte = options.gamma_us_per_byte,
                                                   .rank_times = false,
                                                   .most_messages = options.most_messages});
      if (!best || simulated.total_us * kToSeconds < best->time_s) {
        best = {.time_s = simulated.total_us * kToSeconds,
                .between = full_name(*algorithm, complete(*algorithm, {.ranks = switches}))};
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) {
        throw;
      }
    }
  }
  return best;
}

}  // namespace

std::optional<InSwitch> reduce_in_switches(int ranks, double bytes, const Topology& topology,
                                           const InSwitchOptions& options) {
  if (ranks < kLeastRanks) {
    return std::nullopt;
  }
  const std::vector<Port> ports = ports_of(topology, LinksOut(topology), ranks);
  const int group = ranks_of_a_switch(ports);
  if (group < kLeastRanks) {
    return std::nullopt;
  }
  std::optional<InSwitch> result = InSwitch{};
  if (group < ranks) {
    result = between_switches(ranks, group, bytes, topology, options);
  }
  double latency_us = 0;
  double bytes_per_us = std::numeric_limits<double>::infinity();
  for (const Port& port : ports) {
    latency_us = std::max(latency_us, port.latency_us);
    bytes_per_us = std::min(bytes_per_us, port.bytes_per_us);
  }
  // Protocols that start early put flags between the data, and a switch cannot sum flags.
  const auto fullest = std::max_element(
      topology.protocols.begin(), topology.protocols.end(),
      [](const Protocol& one, const Protocol& other) { return one.share < other.share; });
  const Protocol protocol = fullest == topology.protocols.end() ? Protocol{} : *fullest;
  if (result) {
    const double carried = bytes + bytes / group;
    const double inside_us = protocol.start_us + carried / (bytes_per_us * protocol.share);
    result->time_s = std::max(inside_us * kToSeconds, result->time_s) +
                     2 * (topology.overhead_us + protocol.message_us + latency_us) * kToSeconds;
  }
  return result;
}

}  // namespace unisono::network_model
