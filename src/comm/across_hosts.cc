#include "comm/across_hosts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/catalog.h"
#include "model/simulator/simulate.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// What is usual: some system calls a message, 25 Gbit/s between hosts, shared by the ranks of each.
// The choice needs no more than the order of magnitude between inside and outside.
constexpr double kOverheadUs = 2;
constexpr double kInsideUs = 0.5;
constexpr double kInsideBytesPerUs = 8000;
constexpr double kBetweenUs = 8;
constexpr double kBetweenBytesPerUs = 3000;
// Algorithms with more messages are passed over where they would have to be played one by one.
constexpr double kMostMessages = 20'000;

Topology topology_of(const Hosts& hosts, std::span<const int> members) {
  Topology topology;
  topology.overhead_us = kOverheadUs;
  const int network = add_device(topology, "network", DeviceKind::network_switch);
  std::map<int, int> nics;
  for (const int member : members) {
    const int host = hosts.host(member);
    if (!nics.contains(host)) {
      const std::string name = "host" + std::to_string(host);
      nics[host] = add_device(topology, name, DeviceKind::nic);
      connect(topology, nics[host], network, kBetweenUs / 2, kBetweenBytesPerUs);
    }
    const int core =
        add_device(topology, "rank" + std::to_string(topology.ranks.size()), DeviceKind::core);
    connect(topology, core, nics[host], kInsideUs / 2, kInsideBytesPerUs);
    topology.ranks.push_back(core);
  }
  return topology;
}

// As it is without parameters, with the hosts as its groups, and with more segments.
std::vector<Shape> shapes_of(const Algorithm& algorithm, int ranks, int block) {
  std::vector<Shape> shapes = {complete(algorithm, {.ranks = ranks})};
  if (shapes.front().parameters.local.front() > 0) {
    shapes.front().parameters.local = {block};
  }
  for (const int segments : {4, 16}) {
    if (shapes.front().parameters.segments > 0) {
      shapes.push_back(shapes.front());
      shapes.back().parameters.segments = segments;
    }
  }
  return shapes;
}

}  // namespace

AcrossHosts::AcrossHosts(const Hosts& hosts, std::span<const int> members)
    : ranks_(static_cast<int>(members.size())) {
  several_ = std::any_of(members.begin(), members.end(), [&](int member) {
    return hosts.host(member) != hosts.host(members.front());
  });
  if (several_) {
    block_ = hosts.block(members);
    topology_ = topology_of(hosts, members);
  }
}

const std::string& AcrossHosts::choose(Collective collective, double bytes) {
  const int power = bytes <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(bytes)));
  const auto [entry, fresh] = chosen_.try_emplace({collective, power});
  if (fresh) {
    entry->second = simulate(collective, std::exp2(power));
  }
  return entry->second;
}

std::string AcrossHosts::simulate(Collective collective, double bytes) const {
  std::string best;
  double best_us = 0;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != collective || !can_serve(*algorithm, {.ranks = ranks_})) {
      continue;
    }
    for (const Shape& shape : shapes_of(*algorithm, ranks_, block_)) {
      if (!can_serve(*algorithm, shape)) {
        continue;
      }
      try {
        model::Workload workload{.ranks = ranks_};
        workload.items.push_back(model::operation(*algorithm, shape, bytes));
        const double us = model::simulate(workload, topology_,
                                          {.rank_times = false, .most_messages = kMostMessages})
                              .total_us;
        // Not for a difference that the figures above do not know.
        if (best.empty() || us < best_us * 0.95) {
          best = full_name(*algorithm, shape);
          best_us = us;
        }
      } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) {
          throw;
        }
      }
    }
  }
  return best;
}

}  // namespace unisono::comm
