#include "network_model/simulator/paths.h"

#include <algorithm>
#include <limits>

#include "cost/cost.h"
#include "network_model/simulator/link_rows.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

constexpr double kUsPerSecond = 1e6;

int device_named(const Topology& topology, std::string_view name) {
  const auto found = std::find_if(topology.devices.begin(), topology.devices.end(),
                                  [name](const Device& device) { return device.name == name; });
  return found == topology.devices.end() ? -1 : static_cast<int>(found - topology.devices.begin());
}

// Returns true if the device is `whole` or inside it.
bool is_part_of(const Topology& topology, int device, int whole) {
  while (device >= 0 && device != whole) {
    device = topology.devices[static_cast<std::size_t>(device)].inside;
  }
  return device >= 0;
}

}  // namespace

PathTable::PathTable(const cost::Parameters& parameters) {
  const double beta = parameters.beta_s_per_byte * kUsPerSecond;
  list_.paths.push_back(
      {.overhead_us = parameters.alpha_s * kUsPerSecond,
       .bytes_per_us = beta > 0 ? 1 / beta : std::numeric_limits<double>::infinity()});
}

PathTable::PathTable(const Topology& topology, std::span<const LinkFault> faults,
                     RouteChoice routes)
    : topology_(&topology) {
  router_.emplace_back(topology, routes);
  latency_us_.reserve(topology.links.size());
  for (const Link& link : topology.links) {
    latency_us_.push_back(link.latency_us);
  }
  for (const LinkFault& fault : faults) {
    apply(fault);
  }
  const std::vector<int> first_of_row = first_of_rows(topology);
  row_bytes_per_us_.resize(topology.links.size());
  for (std::size_t i = 0; i < first_of_row.size(); ++i) {
    double& least = row_bytes_per_us_[static_cast<std::size_t>(first_of_row[i])];
    least = least > 0 ? std::min(least, own_bytes_per_us(i)) : own_bytes_per_us(i);
  }
}

double PathTable::own_bytes_per_us(std::size_t link) const {
  const double bytes_per_us = topology_->links[link].bytes_per_us;
  const auto fault = narrowed_.find(link);
  return fault == narrowed_.end() ? bytes_per_us : bytes_per_us * fault->second;
}

void PathTable::apply(const LinkFault& fault) {
  const std::size_t arrow = fault.name.find("->");
  const bool one_way = arrow != std::string::npos;
  const int from = device_named(*topology_, std::string_view(fault.name).substr(0, arrow));
  const int to =
      one_way ? device_named(*topology_, std::string_view(fault.name).substr(arrow + 2)) : -1;
  int hits = 0;
  for (std::size_t i = 0; i < latency_us_.size(); ++i) {
    const Link& link = topology_->links[i];
    const bool hit =
        one_way ? link.from == from && link.to == to
                : is_part_of(*topology_, link.from, from) || is_part_of(*topology_, link.to, from);
    if (hit && from >= 0) {
      narrowed_.try_emplace(i, 1).first->second *= fault.bandwidth_factor;
      latency_us_[i] += fault.added_latency_us;
      ++hits;
    }
  }
  if (hits == 0) {
    throw Error(ErrorCode::usage, "there is no link '" + fault.name +
                                      "' in the topology\nname a device, or one direction of a "
                                      "link as 'from->to'");
  }
}

int PathTable::find(int from_rank, int to_rank) {
  if (topology_ == nullptr) {
    return 0;
  }
  if (!knows_pairs_) {
    add(from_rank, to_rank);
    return static_cast<int>(list_.paths.size()) - 1;
  }
  const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from_rank))
                                << 32U |
                            static_cast<std::uint32_t>(to_rank);
  const auto [place, added] = index_.try_emplace(key, static_cast<int>(list_.paths.size()));
  if (added) {
    add(from_rank, to_rank);
  }
  return place->second;
}

void PathTable::add(int from_rank, int to_rank) {
  const std::vector<int>& route = router_.front().route(from_rank, to_rank);
  Path path{.overhead_us = topology_->overhead_us,
            .bytes_per_us = std::numeric_limits<double>::infinity(),
            .first = static_cast<std::uint32_t>(list_.all_links.size())};
  const std::vector<double>& shares = router_.front().shares();
  for (std::size_t i = 0; i < route.size(); ++i) {
    const auto at = static_cast<std::size_t>(route[i]);
    const double share = shares.empty() ? 1 : shares[i];
    path.latency_us += latency_us_[at] * share;
    if (row_bytes_per_us_[at] == 0) {
      continue;
    }
    path.bytes_per_us = std::min(path.bytes_per_us, row_bytes_per_us_[at] / share);
    list_.all_links.push_back(route[i]);
    if (!shares.empty()) {
      list_.all_shares.push_back(share);
    }
  }
  path.count = static_cast<std::uint32_t>(list_.all_links.size()) - path.first;
  list_.paths.push_back(path);
}

void PathTable::restart() {
  if (topology_ != nullptr) {
    knows_pairs_ = false;
    list_.paths.clear();
    list_.all_links.clear();
    list_.all_shares.clear();
    index_.clear();
  }
}

}  // namespace unisono::network_model
