#include "algorithms/two_shot_hosts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "schedule/compose.h"

namespace unisono::algorithms {
namespace {

using Members = std::vector<int>;

// Returns the ranks of each host, in ascending order.
std::vector<Members> ranks_of(std::span<const int> hosts) {
  std::map<int, Members> by_host;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    by_host[hosts[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<Members> all;
  for (auto& [host, ranks] : by_host) {
    all.push_back(std::move(ranks));
  }
  return all;
}

Schedule flat(Collective collective, int ranks) {
  return build_schedule(*find_algorithm(collective, "flat"), {.ranks = ranks});
}

// Rank l of every host first sums chunk l*hosts + h for its host; then rank l of host h sums these
// sums.
class Parts {
 public:
  explicit Parts(std::vector<Members> ranks)
      : ranks_(std::move(ranks)),
        hosts_(static_cast<int>(ranks_.size())),
        each_(static_cast<int>(ranks_.front().size())) {}

  Schedule in_each_host(Collective collective) const {
    std::optional<Schedule> all;
    for (const Members& members : ranks_) {
      Placement placement = place(members, collective == Collective::reduce_scatter);
      placement.width = hosts_;
      placement.stride = hosts_;
      add(all, sub(flat(collective, each_), placement));
    }
    return *std::move(all);
  }
  Schedule between_hosts() const {
    std::optional<Schedule> all;
    for (int local = 0; local < each_; ++local) {
      Members members;
      for (const Members& ranks : ranks_) {
        members.push_back(ranks[static_cast<std::size_t>(local)]);
      }
      Placement placement = place(members, false);
      placement.first_chunk = local * hosts_;
      add(all, sub(flat(Collective::all_reduce, hosts_), placement));
    }
    return *std::move(all);
  }

 private:
  Placement place(const Members& members, bool begins) const {
    return {.collective = Collective::all_reduce,
            .ranks = hosts_ * each_,
            .chunks = hosts_ * each_,
            .members = members,
            .begins = begins};
  }
  static void add(std::optional<Schedule>& all, const Schedule& part) {
    all = all.has_value() ? beside(*all, part) : part;
  }

  std::vector<Members> ranks_;
  int hosts_;
  int each_;
};

}  // namespace

Schedule two_shot_between(std::span<const int> hosts) {
  const std::vector<Members> ranks = ranks_of(hosts);
  const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const Members& members) {
    return members.size() == ranks.front().size();
  });
  if (!alike || ranks.size() == 1 || ranks.front().size() == 1) {
    return flat(Collective::all_reduce, static_cast<int>(hosts.size()));
  }
  const Parts parts(ranks);
  return then(then(parts.in_each_host(Collective::reduce_scatter), parts.between_hosts()),
              parts.in_each_host(Collective::all_gather));
}

}  // namespace unisono::algorithms
