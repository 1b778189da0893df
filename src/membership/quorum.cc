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
         " came to go on, without " + (absent.size() > 1 ? "ranks " : "rank ") + names +
         ", which may live and go on as well: this is not the larger part\n"
         "start the job again; or shrink without a quorum, where nothing can part the hosts";
}

void throw_evicted() {
  throw Error(ErrorCode::evicted,
              "the other ranks went on without this one: it came too late\nit cannot come back; a "
              "rank that is started in its place can, with grow()");
}

}  // namespace unisono::comm
