#include "membership/quorum.h"

#include <algorithm>

#include "unisono/error.hpp"

namespace unisono::comm {

bool has_quorum(std::span<const Standing> ranks) {
  const auto present = std::count(ranks.begin(), ranks.end(), Standing::present);
  const auto absent = std::count(ranks.begin(), ranks.end(), Standing::absent);
  if (present != absent) {
    return present > absent;
  }
  const auto lowest = std::find_if(ranks.begin(), ranks.end(),
                                   [](Standing standing) { return standing != Standing::gone; });
  return lowest != ranks.end() && *lowest == Standing::present;
}

std::vector<int> with_standing(std::span<const Standing> ranks, Standing standing) {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == standing) {
      found.push_back(static_cast<int>(rank));
    }
  }
  return found;
}

std::string no_quorum(std::span<const Standing> ranks) {
  const std::vector<int> absent = with_standing(ranks, Standing::absent);
  std::string names;
  for (std::size_t i = 0; i < absent.size() && i < 16; ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(absent[i]);
  }
  if (absent.size() > 16) {
    names += " and " + std::to_string(absent.size() - 16) + " more";
  }
  const std::size_t present = with_standing(ranks, Standing::present).size();
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
