#include <fmt/format.h>

#include <algorithm>

#include "show/show.h"

namespace unisono::cli {

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
    text += end == i       ? fmt::format("{}", ranks[i])
            : end == i + 1 ? fmt::format("{},{}", ranks[i], ranks[end])
                           : fmt::format("{}-{}", ranks[i], ranks[end]);
    i = end + 1;
  }
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_list(ranks));
}

}  // namespace unisono::cli
