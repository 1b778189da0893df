#include "base/rank_list.h"

#include <algorithm>
#include <cstddef>

#include "base/private.h"

namespace unisono {

std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) {
      ++end;
    }
    text += text.empty() ? "" : ",";
    text += std::to_string(ranks[i]);
    if (end != i) {
      text += (end == i + 1 ? "," : "-") + std::to_string(ranks[end]);
    }
    i = end + 1;
  }
  return text;
}

UNISONO_PRIVATE std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks);
}

std::string member_text(int rank, int world_rank) {
  std::string text = "rank " + std::to_string(world_rank);
  return world_rank == rank ? text : text + " (" + std::to_string(rank) + " of its group)";
}

}  // namespace unisono
