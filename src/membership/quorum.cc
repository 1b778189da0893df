#include "membership/quorum.h"

#include <algorithm>

#include "unisono/error.hpp"

namespace unisono::comm {

bool has_quorum(std::span<const RankStatus> ranks) {
  const auto present = std::count(ranks.begin(), ranks.end(), RankStatus::present);
  const auto absent = std::count(ranks.begin(), ranks.end(), RankStatus::absent);
  if (present != absent) {
    return present > absent;
  }
  const auto lowest = std::find_if(ranks.begin(), ranks.end(),
                                   [](RankStatus status) { return status != RankStatus::gone; });
  return lowest != ranks.end() && *lowest == RankStatus::present;
}

std::vector<int> with_status(std::span<const RankStatus> ranks, RankStatus status) {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == status) {
      found.push_back(static_cast<int>(rank));
    }
  }
  return found;
}

std::string no_quorum(std::span<const RankStatus> ranks) {
  const std::vector<int> absent = with_status(ranks, RankStatus::absent);
  std::string names;
  for (std::size_t i = 0; i < absent.size() && i < 16; ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(absent[i]);
  }
  if (absent.size() > 16) {
    names += " and " + std::to_string(absent.size() - 16) + " more";
  }
  const std::size_t present = with_status(ranks, RankStatus::present).size();
  return std::to_string(present) + (present == 1 ? " rank" : " ranks") +
         " met to continue, without " + (absent.size() > 1 ? "ranks " : "rank ") + names +
         ", which may be alive and continue too: these ranks are not a majority\nrestart the job, "
         "or shrink without a quorum if the network between the hosts cannot split";
}

void throw_evicted() {
  throw Error(ErrorCode::evicted,
              "the other ranks continued without this rank, which came too late\nthis rank cannot "
              "return; start a new one in its place, and call grow()");
}

}  // namespace unisono::comm
