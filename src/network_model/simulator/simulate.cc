#include "network_model/simulator/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "network_model/simulator/fixed_rates.h"
#include "network_model/simulator/link_rows.h"
#include "network_model/simulator/program.h"
#include "network_model/simulator/shared_rates.h"
#include "network_model/simulator/sharing.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

void check(const Workload& workload, const SimulationOptions& options) {
  const auto wrong = [](const std::string& what) { throw Error(ErrorCode::usage, what); };
  constexpr int kMostPorts = 64;
  if (workload.ranks < 1) {
    wrong("a workload needs at least one rank");
  }
  if (options.ports < 1 || options.ports > kMostPorts) {
    wrong("a rank has 1 to 64 ports, not " + std::to_string(options.ports));
  }
  for (const double part :
       {options.gamma_us_per_byte, options.launch_us, options.segment_bytes, options.jitter}) {
    if (!(part >= 0) || !std::isfinite(part)) {
      wrong("gamma, launch, segments and jitter must be zero or more");
    }
  }
  for (const WorkItem& item : workload.items) {
    if (item.compact != nullptr && options.segment_bytes > 0) {
      wrong(item.name +
            " is in its short form, which has no segments\nuse operation(..., written_out)");
    }
    if (item.schedule != nullptr && !item.schedule->counts.empty() && options.segment_bytes > 0) {
      wrong(
          item.name +
          " has blocks of different sizes, which cannot be cut into segments\nremove the segments");
    }
  }
  for (const RankFault& fault : options.rank_faults) {
    if (!(fault.factor > 0) || !(fault.late_us >= 0) || !std::isfinite(fault.factor) ||
        !std::isfinite(fault.late_us)) {
      wrong("the factor of a slow rank must be above zero, and its delay zero or more");
    }
  }
  for (const LinkFault& fault : options.link_faults) {
    if (!(fault.bandwidth_factor > 0) || !(fault.bandwidth_factor <= 1) ||
        !(fault.added_latency_us >= 0)) {
      wrong(
          "a degraded link must keep a bandwidth factor above 0 and at most 1; added latency must "
          "be zero or more");
    }
  }
}

// Counts the messages of all operations, without local moves. If steps are played until they are
// steady, counts only the first ones.
double least_played(const Play& play, bool until_steady) {
  constexpr std::int64_t kFirst = 3;
  std::map<const void*, double> known;
  double sum = 0;
  for (const PlayItem& item : play.items) {
    if (!item.is_operation()) {
      continue;
    }
    const auto [place, added] = known.try_emplace(item.blocks.get(), 0);
    for (std::size_t i = 0; i < item.block_count() && added; ++i) {
      const BlockSource::Size size = item.block_size(i);
      const std::int64_t steps = until_steady ? std::min(size.repeats, kFirst) : size.repeats;
      place->second += static_cast<double>(size.messages) * static_cast<double>(steps);
    }
    sum += place->second;
  }
  return sum;
}

bool has_streams(const Play& play) {
  std::vector<int> ranks = play.rank_of_actor;
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end();
}

// Even if messages could share links, links may never be overloaded: tries that first.
SimulationResult play_through(const Play& play, const PathTable& paths,
                              const SimulationOptions& options, bool shared) {
  const bool may_be_alone =
      !shared || (options.contention == Contention::automatic && !has_streams(play));
  if (may_be_alone) {
    const auto links = shared ? FixedRates::Links::watched : FixedRates::Links::alone;
    std::optional<SimulationResult> result = FixedRates(play, paths, options, links).run();
    if (result) {
      return *std::move(result);
    }
  }
  return SharedRates(play, paths, options).run();
}

// Moves the start-up time of operations out of the waiting time: both engines count a rank as
// waiting if it neither moves data nor computes.
void tell_starts(const Play& play, SimulationResult& result) {
  for (const PlayItem& item : play.items) {
    if (item.launch_us <= 0 || result.ranks.empty()) {
      continue;
    }
    for (const int actor : item.actors) {
      const int rank = play.rank_of_actor[static_cast<std::size_t>(actor)];
      result.ranks[static_cast<std::size_t>(rank)].starting_us += item.launch_us;
    }
  }
  constexpr double kRounding = 1e-12;
  for (RankTimes& rank : result.ranks) {
    // Another stream of the rank may move data during the start-up.
    rank.starting_us = std::min(rank.starting_us, rank.waiting_us);
    rank.waiting_us -= rank.starting_us;
    rank.waiting_us = rank.waiting_us > kRounding * result.total_us ? rank.waiting_us : 0;
  }
  if (play.items.size() == 1 && play.items.front().protocol != nullptr) {
    result.protocol = *play.items.front().protocol;
  }
}

SimulationResult play_out(const Workload& workload, const SimulationOptions& options,
                          PathTable& paths) {
  const Play play = make_play(workload, options, paths);
  const bool shared =
      options.contention == Contention::on || has_streams(play) ||
      (options.contention == Contention::automatic && may_share_links(play, paths, options.ports));
  const bool until_steady =
      !shared && options.extrapolate && options.jitter <= 0 && options.ports == 1;
  check_limit(least_played(play, until_steady), options, shared);
  if (options.progress != nullptr) {
    options.progress->all = least_played(play, false);
  }
  SimulationResult result = play_through(play, paths, options, shared);
  tell_starts(play, result);
  return result;
}

// The bytes of a row's first link also used its other links. The rows are computed again rather
// than stored, because they would take the most memory in topologies with the most links.
void copy_along_rows(const Topology& topology, const PathTable& paths, std::vector<LinkUse>& uses) {
  const std::vector<int> first = first_of_rows(topology);
  for (std::size_t link = 0; link < uses.size(); ++link) {
    uses[link] = uses[static_cast<std::size_t>(first[link])];
    uses[link].full_us = uses[link].bytes / paths.own_bytes_per_us(link);
  }
}

}  // namespace

SimulationResult simulate(const Workload& workload, const Topology& topology,
                          const SimulationOptions& options) {
  check(workload, options);
  if (workload.ranks > topology.rank_count()) {
    throw Error(ErrorCode::usage, std::to_string(workload.ranks) +
                                      " ranks do not fit on the topology, which has " +
                                      std::to_string(topology.rank_count()) +
                                      "\nuse a larger topology, or fewer ranks");
  }
  PathTable paths(topology, options.link_faults, options.routes);
  SimulationResult result = play_out(workload, options, paths);
  copy_along_rows(topology, paths, result.links);
  return result;
}

SimulationResult simulate(const Workload& workload, const cost::Parameters& flat,
                          const SimulationOptions& options) {
  check(workload, options);
  if (!options.link_faults.empty()) {
    throw Error(ErrorCode::usage, "a flat network has no links to degrade");
  }
  constexpr double kUsPerS = 1e6;
  SimulationOptions with_parameters = options;
  with_parameters.gamma_us_per_byte = flat.gamma_s_per_byte * kUsPerS;
  with_parameters.launch_us = flat.floor_s * kUsPerS;
  PathTable paths(flat);
  return play_out(workload, with_parameters, paths);
}

}  // namespace unisono::network_model
