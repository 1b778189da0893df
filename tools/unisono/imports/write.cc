// Writes an imported run as a recording, and as a workload.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "imports/imports.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

double first_moment(const std::vector<ImportedRank>& ranks) {
  double first = 0;
  bool is_set = false;
  for (const ImportedRank& rank : ranks) {
    for (const ImportedCall& call : rank.calls) {
      first = is_set ? std::min(first, call.start_us) : call.start_us;
      is_set = true;
    }
  }
  return first;
}

int rank_count(const std::vector<ImportedRank>& ranks) {
  int count = 1;
  for (const ImportedRank& rank : ranks) {
    count = std::max(count, rank.rank + 1);
    for (const auto& [name, members] : rank.groups) {
      for (const int member : members) {
        count = std::max(count, member + 1);
      }
    }
  }
  return count;
}

std::map<std::string, std::vector<int>> groups_of(const std::vector<ImportedRank>& ranks) {
  std::map<std::string, std::vector<int>> groups;
  for (const ImportedRank& rank : ranks) {
    groups.insert(rank.groups.begin(), rank.groups.end());
  }
  std::vector<int>& world = groups["world"];
  if (world.empty()) {
    world.resize(static_cast<std::size_t>(rank_count(ranks)));
    std::iota(world.begin(), world.end(), 0);
  }
  return groups;
}

double in_ns(double us) {
  return std::round(us * 1000) / 1000;
}

// Returns the algorithm that a library would use for a long message.
const char* algorithm_for(const std::string& collective) {
  if (collective == "all_to_all") {
    return "pairwise";
  }
  const bool is_ring =
      collective == "all_reduce" || collective == "all_gather" || collective == "reduce_scatter";
  return is_ring ? "ring" : "binomial";
}

// A call of all the group's ranks.
struct Together {
  const ImportedCall* call = nullptr;  // of the rank that began last
  double bytes = 0;                    // the most of any rank, such as the root of a gather
  std::vector<std::pair<int, const ImportedCall*>> ranks = {};
};

}  // namespace

std::vector<int> missing_ranks(const std::vector<ImportedRank>& ranks) {
  std::vector<int> missing;
  std::vector<bool> is_here(static_cast<std::size_t>(rank_count(ranks)), false);
  for (const ImportedRank& rank : ranks) {
    is_here[static_cast<std::size_t>(rank.rank)] = true;
  }
  for (std::size_t rank = 0; rank < is_here.size(); ++rank) {
    if (!is_here[rank]) {
      missing.push_back(static_cast<int>(rank));
    }
  }
  return missing;
}

ordered_json recording_of(const std::vector<ImportedRank>& ranks,
                          const std::vector<double>& uncertainty) {
  const double first = first_moment(ranks);
  ordered_json groups = {{"name", ordered_json::array()}, {"ranks", ordered_json::array()}};
  for (const auto& [name, members] : groups_of(ranks)) {
    groups["name"].push_back(name);
    groups["ranks"].push_back(members);
  }
  ordered_json ops;
  for (const char* column : {"rank", "number", "group", "collective", "algorithm", "bytes", "dtype",
                             "start_us", "end_us"}) {
    ops[column] = ordered_json::array();
  }
  ordered_json doubts(static_cast<std::size_t>(rank_count(ranks)), nullptr);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (uncertainty[i] >= 0) {
      doubts[static_cast<std::size_t>(ranks[i].rank)] = in_ns(uncertainty[i]);
    }
    for (const ImportedCall& call : ranks[i].calls) {
      ops["rank"].push_back(ranks[i].rank);
      ops["number"].push_back(call.number);
      ops["group"].push_back(call.group);
      ops["collective"].push_back(call.collective);
      ops["algorithm"].push_back("");
      ops["bytes"].push_back(static_cast<std::int64_t>(call.bytes));
      ops["dtype"].push_back(call.dtype.empty() ? "u8" : call.dtype);
      ops["start_us"].push_back(in_ns(call.start_us - first));
      ops["end_us"].push_back(call.end_us ? ordered_json(in_ns(*call.end_us - first))
                                          : ordered_json());
    }
  }
  return {{"format", "unisono.trace/1"},      {"name", "imported"}, {"ranks", rank_count(ranks)},
          {"clock_uncertainty_us", doubts},   {"groups", groups},   {"ops", ops},
          {"findings", ordered_json::array()}};
}

ImportedWorkload workload_of(const std::vector<ImportedRank>& ranks) {
  ImportedWorkload result;
  const std::map<std::string, std::vector<int>> groups = groups_of(ranks);
  std::map<std::pair<std::string, int>, Together> calls;
  for (const ImportedRank& rank : ranks) {
    for (const ImportedCall& call : rank.calls) {
      Together& together = calls[{call.group, call.number}];
      together.ranks.emplace_back(rank.rank, &call);
      together.bytes = std::max(together.bytes, call.bytes);
      if (together.call == nullptr || call.start_us > together.call->start_us) {
        together.call = &call;
      }
    }
  }
  const bool has_sizes = std::ranges::all_of(ranks, &ImportedRank::has_sizes);
  std::vector<const Together*> order;
  for (const auto& [key, together] : calls) {
    const auto group = groups.find(key.first);
    const bool is_whole = group != groups.end() && group->second.size() == together.ranks.size() &&
                          std::ranges::all_of(together.ranks, [&](const auto& member) {
                            return member.second->collective == together.call->collective;
                          });
    const bool is_known = together.call->collective != "barrier" && together.ranks.size() > 1;
    if (is_whole && is_known) {
      order.push_back(&together);
      result.without_size += !has_sizes && together.bytes == 0 ? 1 : 0;
    } else {
      result.left_out += is_known || !is_whole ? 1 : 0;
    }
  }
  std::ranges::stable_sort(order, {}, [](const Together* one) { return one->call->start_us; });

  const double first = first_moment(ranks);
  const bool has_times = std::ranges::all_of(ranks, &ImportedRank::has_times);
  std::map<int, double> free_us;  // when a rank's last call ended
  ordered_json items = ordered_json::array();
  for (const Together* together : order) {
    for (const auto& [rank, call] : together->ranks) {
      const double since = free_us.contains(rank) ? free_us[rank] : first;
      if (const double gap = call->start_us - since; has_times && gap >= 0.001) {
        items.push_back({{"name", "between"},
                         {"compute_us", in_ns(gap)},
                         {"group", ordered_json::array({rank})}});
      }
      free_us[rank] = std::max(since, call->end_us.value_or(since));
    }
    const ImportedCall& call = *together->call;
    items.push_back({{"name", call.group + " " + call.collective},
                     {"collective", call.collective},
                     {"algorithm", algorithm_for(call.collective)},
                     {"bytes", static_cast<std::int64_t>(together->bytes)},
                     {"group", groups.at(call.group)}});
  }
  result.document = {
      {"format", "unisono.workload/1"}, {"ranks", rank_count(ranks)}, {"items", items}};
  return result;
}

}  // namespace unisono::cli
