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

}  // namespace unisono
