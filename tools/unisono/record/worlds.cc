#include "record/worlds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace unisono::cli {

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

}  // namespace unisono::cli
