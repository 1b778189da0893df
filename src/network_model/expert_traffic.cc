#include "network_model/expert_traffic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include "base/as_size.h"
#include "topology/routes.h"

namespace unisono::network_model {
namespace {

// The hosts of the ranks, numbered from 0 in rank order.
struct Hosts {
  explicit Hosts(const Topology& topology) {
    std::map<int, int> numbers;
    for (int rank = 0; rank < topology.rank_count(); ++rank) {
      int device = topology.ranks[as_size(rank)];
      while (device >= 0 && topology.devices[as_size(device)].kind != DeviceKind::node) {
        device = topology.devices[as_size(device)].inside;
      }
      const int key = device >= 0 ? device : -1 - rank;
      const auto [found, is_new] = numbers.emplace(key, static_cast<int>(ranks.size()));
      if (is_new) {
        ranks.emplace_back();
      }
      of_rank.push_back(found->second);
      place.push_back(static_cast<int>(ranks[as_size(found->second)].size()));
      ranks[as_size(found->second)].push_back(rank);
    }
  }
  std::vector<int> of_rank;
  std::vector<int> place;  // by rank: its index among the ranks of its host
  std::vector<std::vector<int>> ranks;
};

// The bytes of all ranks on each link.
class Load {
 public:
  Load(const Topology& topology, bool backward)
      : topology_(topology),
        backward_(backward),
        router_(topology),
        hosts_(topology),
        bytes_(topology.links.size(), 0.0) {}

  const Hosts& hosts() const { return hosts_; }

  void add(int from, int to, double bytes) {
    if (from == to || bytes <= 0) {
      return;
    }
    double latency = topology_.overhead_us;
    for (const int link : backward_ ? router_.route(to, from) : router_.route(from, to)) {
      bytes_[as_size(link)] += bytes;
      latency += topology_.links[as_size(link)].latency_us;
    }
    sent_ += bytes;
    const bool leaves = hosts_.of_rank[as_size(from)] != hosts_.of_rank[as_size(to)];
    host_ += leaves ? bytes : 0;
    (leaves ? latency_between_ : latency_inside_) =
        std::max(leaves ? latency_between_ : latency_inside_, latency);
  }

  // `in_turn`: a row first goes to a host, and then to ranks inside it.
  ExpertCost cost(double row_bytes, bool in_turn) const {
    const double ranks = topology_.rank_count();
    ExpertCost cost{
        .row_bytes = row_bytes, .sent_bytes = sent_ / ranks, .host_bytes = host_ / ranks};
    for (std::size_t link = 0; link < bytes_.size(); ++link) {
      const Link& each = topology_.links[link];
      const double time = bytes_[link] / each.bytes_per_us;
      if (time > cost.bound_us) {
        cost.bound_us = time;
        cost.bound_link = topology_.devices[as_size(each.from)].name + " -> " +
                          topology_.devices[as_size(each.to)].name;
      }
    }
    cost.time_us = cost.bound_us + (in_turn ? latency_between_ + latency_inside_
                                            : std::max(latency_between_, latency_inside_));
    return cost;
  }

 private:
  const Topology& topology_;
  bool backward_;
  Router router_;
  Hosts hosts_;
  std::vector<double> bytes_;
  double sent_ = 0;
  double host_ = 0;
  double latency_between_ = 0;
  double latency_inside_ = 0;
};

void add_low_latency(const ExpertShape& shape, double row_bytes, int ranks, Load& load) {
  const double each = shape.tokens * shape.k * row_bytes / ranks;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      load.add(from, to, each);
    }
  }
}

void add_normal(const ExpertShape& shape, double row_bytes, int ranks, Load& load) {
  const double of_rank = static_cast<double>(shape.experts) / ranks;
  const double to_rank = shape.tokens * row_bytes * chance_of_part(shape, of_rank);
  for (int from = 0; from < ranks; ++from) {
    for (const std::vector<int>& host : load.hosts().ranks) {
      const auto size = static_cast<int>(host.size());
      const bool own =
          load.hosts().of_rank[as_size(host[0])] == load.hosts().of_rank[as_size(from)];
      const int landing = own ? from : host[as_size(load.hosts().place[as_size(from)] % size)];
      load.add(from, landing, shape.tokens * row_bytes * chance_of_part(shape, of_rank * size));
      for (const int to : host) {
        load.add(landing, to, to_rank);
      }
    }
  }
}

ExpertCost cost_of(const ExpertShape& shape, ExpertMode mode, const Topology& topology,
                   double row_bytes, bool backward) {
  Load load(topology, backward);
  const bool is_normal = mode == ExpertMode::normal;
  (is_normal ? add_normal : add_low_latency)(shape, row_bytes, topology.rank_count(), load);
  return load.cost(row_bytes, is_normal);
}

}  // namespace

double dispatch_row_bytes(double hidden) {
  return hidden + 4 * std::ceil(hidden / 128);
}
double combine_row_bytes(double hidden) {
  return 2 * hidden;
}

double chance_of_part(const ExpertShape& shape, double part) {
  double none = 1;
  for (int i = 0; i < shape.k; ++i) {
    none *= std::max(0.0, shape.experts - part - i) / (shape.experts - i);
  }
  return 1 - none;
}

int rank_of_expert(int expert, int experts, int ranks) {
  const int each = experts / ranks;
  const int larger = experts % ranks;
  const int edge = larger * (each + 1);
  return expert < edge ? expert / (each + 1) : larger + (expert - edge) / each;
}

Counts dispatch_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks) {
  const auto n = as_size(ranks);
  const auto k = as_size(shape.k);
  Counts counts{.element_bytes = static_cast<std::int64_t>(dispatch_row_bytes(shape.hidden)),
                .send = CountRows(n, std::vector<std::int64_t>(n))};
  const std::size_t tokens = chosen.size() / k / n;
  std::vector<bool> meant(n);
  for (std::size_t token = 0; token < tokens * n; ++token) {
    std::fill(meant.begin(), meant.end(), false);
    for (const std::int32_t expert : chosen.subspan(token * k, k)) {
      if (expert >= 0) {
        meant[as_size(rank_of_expert(expert, shape.experts, ranks))] = true;
      }
    }
    for (std::size_t to = 0; to < n; ++to) {
      counts.send[token / tokens][to] += meant[to] ? 1 : 0;
    }
  }
  return counts;
}

Counts combine_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks) {
  const Counts there = dispatch_counts(chosen, shape, ranks);
  Counts back{.element_bytes = static_cast<std::int64_t>(combine_row_bytes(shape.hidden)),
              .send = there.send};
  for (std::size_t from = 0; from < as_size(ranks); ++from) {
    for (std::size_t to = 0; to < as_size(ranks); ++to) {
      back.send[from][to] = there.send[to][from];
    }
  }
  return back;
}

ExpertCost dispatch_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology) {
  return cost_of(shape, mode, topology, dispatch_row_bytes(shape.hidden), false);
}
ExpertCost combine_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology) {
  return cost_of(shape, mode, topology, combine_row_bytes(shape.hidden), true);
}

}  // namespace unisono::network_model
