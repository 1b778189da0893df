#include "comm/hosts.h"

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

int Hosts::block(std::span<const int> ranks) const {
  std::size_t length = 0;
  while (length < ranks.size() && host(ranks[length]) == host(ranks[0])) {
    ++length;
  }
  std::vector<bool> seen(static_cast<std::size_t>(count_), false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool begins = i % length == 0;
    const auto mine = static_cast<std::size_t>(host(ranks[i]));
    if (begins ? seen[mine] : host(ranks[i]) != host(ranks[i - 1])) {
      return 1;
    }
    seen[mine] = true;
  }
  return ranks.size() % length == 0 ? static_cast<int>(length) : 1;
}

}  // namespace unisono::comm
