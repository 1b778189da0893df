#include "select/across_hosts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "network_model/plan_on.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// Typical values: some system calls per message, and 25 Gbit/s between hosts, shared by the ranks
// on each. The choice needs only the order of magnitude between inside and outside.
constexpr double kOverheadUs = 2;
constexpr double kInsideUs = 0.5;
constexpr double kInsideBytesPerUs = 8000;
constexpr double kBetweenUs = 8;
constexpr double kBetweenBytesPerUs = 3000;
constexpr double kReducedBytesPerUs = 25'000;
// A longer vector does not stay in the cache: one pass over it then costs more than reducing only a
// part of it saves. Measured between two ranks on the loopback device.
constexpr double kCachedBytes = 8 << 20;
// A rank of an all_to_all posts its parts one after the other and does not wait for each to arrive,
// so this many are in transit in the time of one. With algorithms that send fewer but longer
// messages, four ranks on two cores take 1.2 to 1.4 times as long. If all ranks get the same data,
// going round by round is as fast there, or faster.
constexpr int kPostedAtOnce = 4;
// Algorithms with more messages are skipped if their messages would have to be simulated one by
// one.
constexpr double kMostMessages = 20'000;

Topology topology_of(const Hosts& hosts, std::span<const int> members) {
  Topology topology;
  topology.overhead_us = kOverheadUs;
  const int network = add_device(topology, "network", DeviceKind::network_switch);
  std::map<int, int> nics;
  for (const int member : members) {
    const int host = hosts.host(member);
    const std::string name = "host" + std::to_string(host);
    if (!nics.contains(host)) {
      const int node = add_device(topology, name, DeviceKind::node);
      nics[host] = add_device(topology, name + ".nic", DeviceKind::nic, node);
      connect(topology, nics[host], network, kBetweenUs / 2, kBetweenBytesPerUs);
    }
    const int nic = nics[host];
    const int core =
        add_device(topology, name + ".rank" + std::to_string(topology.ranks.size()),
                   DeviceKind::core, topology.devices[static_cast<std::size_t>(nic)].inside);
    connect(topology, core, nic, kInsideUs / 2, kInsideBytesPerUs);
    topology.ranks.push_back(core);
  }
  return topology;
}

// One power for all sizes up to the next power of two.
int power_of(double bytes) {
  return bytes <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(bytes)));
}

double gamma_of(double bytes) {
  return bytes <= kCachedBytes ? 1 / kReducedBytesPerUs : 0;
}

}  // namespace

AcrossHosts::AcrossHosts(const Hosts& hosts, std::span<const int> members)
    : ranks_(static_cast<int>(members.size())) {
  for (const int member : members) {
    host_of_.push_back(hosts.host(member));
  }
  several_ = std::any_of(members.begin(), members.end(), [&](int member) {
    return hosts.host(member) != hosts.host(members.front());
  });
  if (several_) {
    topology_ = topology_of(hosts, members);
  }
}

const std::string& AcrossHosts::choose(Collective collective, double bytes, bool rank_order) {
  const int power = power_of(bytes);
  const auto [entry, fresh] = chosen_.try_emplace({collective, power, rank_order});
  if (fresh) {
    const double size = std::exp2(power);
    const network_model::OnTopology plan = network_model::plan_on(
        {.collective = collective, .ranks = ranks_, .bytes = size}, topology_,
        {.most_messages = kMostMessages,
         .gamma_us_per_byte = gamma_of(size),
         .at_once = collective == Collective::all_to_all ? kPostedAtOnce : 1,
         .rank_order = rank_order});
    entry->second = plan.rows.empty() ? std::string() : plan.rows.front().name;
  }
  return entry->second;
}

const network_model::EncodedAlgorithm* AcrossHosts::choose_encoded(
    const network_model::EncodedCall& call, double bytes) {
  EncodedChoices& choices = encoded_[{call.collective, call.root, call.code}];
  if (!choices.all.has_value()) {
    choices.all = network_model::encoded_algorithms(call, topology_, kMostMessages);
    std::erase_if(*choices.all, [](const auto& one) { return one.schedule == nullptr; });
  }
  const auto [entry, fresh] = choices.fastest.try_emplace(power_of(bytes), nullptr);
  if (fresh) {
    entry->second = find_fastest(*choices.all, std::exp2(power_of(bytes)));
  }
  return entry->second;
}

// Ties go to the first; returns the first algorithm if there are too many messages to simulate.
const network_model::EncodedAlgorithm* AcrossHosts::find_fastest(
    const std::vector<network_model::EncodedAlgorithm>& all, double bytes) const {
  const network_model::EncodedAlgorithm* fastest = all.empty() ? nullptr : &all.front();
  double least = std::numeric_limits<double>::infinity();
  for (const network_model::EncodedAlgorithm& one : all) {
    try {
      const double us = network_model::simulate_encoded(one, bytes, topology_,
                                                        {.gamma_us_per_byte = gamma_of(bytes),
                                                         .rank_times = false,
                                                         .most_messages = kMostMessages})
                            .total_us;
      if (us < least * (1 - 1e-12)) {
        least = us;
        fastest = &one;
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) {
        throw;
      }
    }
  }
  return fastest;
}

}  // namespace unisono::comm
