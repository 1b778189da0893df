#include "bootstrap/hosts.h"

#include <map>
#include <utility>

namespace unisono::comm {

Hosts::Hosts(int rank, const std::vector<std::string>& names) {
  std::map<std::string, std::pair<int, int>> known;  // its number, and its ranks so far
  for (const std::string& name : names) {
    const auto found = known.try_emplace(name, static_cast<int>(known.size()), 0).first;
    host_.push_back(found->second.first);
    local_.push_back(found->second.second++);
  }
  count_ = static_cast<int>(known.size());
  here_ = host_[at(rank)];
  for (int other = 0; other < size(); ++other) {
    if (is_here(other)) {
      ranks_here_.push_back(other);
    }
  }
}

std::vector<int> Hosts::local_of(std::span<const int> ranks) const {
  std::vector<int> numbers;
  for (const int rank : ranks) {
    if (is_here(rank)) {
      numbers.push_back(local(rank));
    }
  }
  return numbers;
}

}  // namespace unisono::comm
