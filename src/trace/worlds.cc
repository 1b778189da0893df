#include "trace/worlds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace unisono::trace {

std::vector<int> worlds_of(const std::vector<RankRecord>& records) {
  std::map<std::pair<int, int>, std::size_t> seen;  // rank, world
  std::vector<std::size_t> generations;             // by record
  std::vector<int> counts;                          // by generation: worlds
  for (const RankRecord& record : records) {
    const std::size_t generation = seen[{record.rank, record.world}]++;
    generations.push_back(generation);
    counts.resize(std::max(counts.size(), generation + 1), 0);
    counts[generation] = std::max(counts[generation], record.world + 1);
  }
  std::vector<int> worlds;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>(generations[i]);
    worlds.push_back(std::accumulate(counts.begin(), end, records[i].world));
  }
  return worlds;
}

const ReceivedAbort& first_of(const std::vector<ReceivedAbort>& heard) {
  const auto weight = [](const ReceivedAbort& abort) {
    const bool timed = !std::isnan(abort.at_ns);
    return std::tuple(abort.what->reporter != abort.rank, !timed, timed ? abort.at_ns : 0.0);
  };
  return *std::min_element(heard.begin(), heard.end(),
                           [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
}

}  // namespace unisono::trace
