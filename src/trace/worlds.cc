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
  std::vector<std::size_t> turns;                   // by record
  std::vector<int> counts;                          // by turn: worlds
  for (const RankRecord& record : records) {
    const std::size_t turn = seen[{record.rank, record.world}]++;
    turns.push_back(turn);
    counts.resize(std::max(counts.size(), turn + 1), 0);
    counts[turn] = std::max(counts[turn], record.world + 1);
  }
  std::vector<int> worlds;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>(turns[i]);
    worlds.push_back(std::accumulate(counts.begin(), end, records[i].world));
  }
  return worlds;
}

const HeardAbort& first_of(const std::vector<HeardAbort>& heard) {
  const auto weight = [](const HeardAbort& abort) {
    const bool timed = !std::isnan(abort.at_ns);
    return std::tuple(abort.what->reporter != abort.rank, !timed, timed ? abort.at_ns : 0.0);
  };
  return *std::min_element(heard.begin(), heard.end(),
                           [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
}

}  // namespace unisono::trace
