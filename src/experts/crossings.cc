#include "experts/crossings.h"

#include <cstddef>
#include <limits>

namespace unisono::experts {

std::vector<Crossing> find_crossings(const HostMap& hosts, int k, const Leaving& leaving,
                                     std::size_t choices, Crossings& crossings) {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> host_of(choices, kNowhere);
  std::size_t next = 0;
  for (std::size_t rank = 0; rank < leaving.send.size(); ++rank) {
    for (std::size_t i = 0; i < leaving.send[rank]; ++i) {
      host_of[leaving.told[next++].choice] = hosts.host(static_cast<int>(rank));
    }
  }
  crossings.leave.assign(hosts.count(), {});
  std::vector<Crossing> number(choices);
  for (std::size_t choice = 0; choice < choices; ++choice) {
    if (host_of[choice] == kNowhere) {
      continue;
    }
    CrossingRows& rows = crossings.leave[host_of[choice]];
    const auto token = static_cast<std::uint32_t>(choice / static_cast<std::size_t>(k));
    if (rows.tokens.empty() || rows.tokens.back() != token) {
      rows.tokens.push_back(token);
    }
    number[choice] = {.token = static_cast<std::uint32_t>(rows.tokens.size() - 1),
                      .choice = static_cast<std::uint32_t>(rows.choices.size())};
    rows.choices.push_back(static_cast<std::uint32_t>(choice));
  }
  std::vector<Crossing> of_told;
  of_told.reserve(leaving.told.size());
  for (const Told& told : leaving.told) {
    of_told.push_back(number[told.choice]);
  }
  return of_told;
}

}  // namespace unisono::experts
