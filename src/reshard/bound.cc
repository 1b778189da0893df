// Computes the fewest bytes of a reshard from the layouts alone.
#include <algorithm>
#include <map>
#include <set>

#include "reshard/elements.h"
#include "reshard/even_load.h"
#include "reshard/pieces.h"
#include "reshard/sides.h"

namespace unisono::parallel {
namespace {

// Counts of elements for one tensor.
struct Fewest {
  std::size_t between_hosts = 0;
  std::size_t in_all = 0;  // fewest among plans with the fewest between hosts
  Loads loads = {};        // loads of plans that have both
};

// Ranks that hold a cell of elements, and ranks that need the cell.
struct Cell {
  std::vector<std::set<int>> holders = {};  // per summand
  std::set<int> targets = {};
  std::size_t count = 0;
};

class Counter {
 public:
  explicit Counter(const std::vector<int>& hosts) : hosts_(hosts) {}

  Fewest run(const ReshardSides& sides, std::size_t dims) {
    fewest_ = {};
    // Splits the elements into cells at the range bounds of all ranks.
    ElementRanges cells(dims);
    for (std::size_t dim = 0; dim < dims; ++dim) {
      std::set<std::size_t> bounds;
      for (const ReshardSide* side : {&sides.from, &sides.to}) {
        for (const auto& [rank, elements] : side->elements) {
          for (const Range& range : elements[dim]) {
            bounds.insert({range.first, range.first + range.count});
          }
        }
      }
      for (auto at = bounds.begin(); at != bounds.end() && std::next(at) != bounds.end(); ++at) {
        cells[dim].push_back({.first = *at, .count = *std::next(at) - *at});
      }
    }
    for_each_box(cells, [&](const std::vector<Range>& box) { add(cell_of(sides, box)); });
    return std::move(fewest_);
  }

 private:
  int host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  static Cell cell_of(const ReshardSides& sides, const std::vector<Range>& box) {
    Cell cell{.holders = std::vector<std::set<int>>(sides.from.summands), .count = 1};
    ElementRanges ranges;
    for (const Range& range : box) {
      cell.count *= range.count;
      ranges.push_back({range});
    }
    for (const auto& [rank, elements] : sides.to.elements) {
      if (overlap(ranges, elements)) {
        cell.targets.insert(rank);
      }
    }
    for (const auto& [rank, elements] : sides.from.elements) {
      if (overlap(ranges, elements)) {
        cell.holders[sides.from.summand.at(rank)].insert(rank);
      }
    }
    return cell;
  }

  void add(const Cell& cell) {
    if (!cell.targets.empty()) {
      cell.holders.size() == 1 ? add_copies(cell) : add_sum(cell);
    }
  }

  void add_load(const std::set<int>& senders, std::size_t elements) {
    if (elements > 0) {
      fewest_.loads[{senders.begin(), senders.end()}] += elements;
      fewest_.in_all += elements;
    }
  }

  // Each host that lacks the cell receives it once, and so does each rank. The first such host
  // receives the cell from a host of the holders: from a holder, or from a rank there that has
  // received a copy. The other hosts may also receive it from ranks on hosts that have received it.
  void add_copies(const Cell& cell) {
    const std::set<int>& holders = cell.holders.front();
    std::map<int, std::set<int>> holders_on;
    std::map<int, std::set<int>> lacking_on;
    std::set<int> all = holders;
    std::set<int> first = holders;
    for (const int rank : holders) {
      holders_on[host(rank)].insert(rank);
    }
    for (const int rank : cell.targets) {
      if (!holders.contains(rank)) {
        lacking_on[host(rank)].insert(rank);
        all.insert(rank);
        if (holders_on.contains(host(rank))) {
          first.insert(rank);
        }
      }
    }
    std::size_t entered = 0;  // number of hosts
    for (const auto& [on, lacking] : lacking_on) {
      std::set<int> senders = lacking;
      if (const auto held = holders_on.find(on); held != holders_on.end()) {
        add_load(held->second, cell.count);
        senders.insert(held->second.begin(), held->second.end());
      } else {
        add_load(entered == 0 ? first : all, cell.count);
        ++entered;
      }
      add_load(senders, (lacking.size() - 1) * cell.count);
    }
    fewest_.between_hosts += entered * cell.count;
  }

  // Each summand is sent to the rank that adds, unless that rank holds it; the sum is then sent to
  // the targets.
  void add_sum(const Cell& cell) {
    std::set<int> target_hosts;
    std::vector<std::set<int>> holder_hosts(cell.holders.size());
    std::set<int> all = cell.targets;
    for (const int target : cell.targets) {
      target_hosts.insert(host(target));
    }
    for (std::size_t g = 0; g < cell.holders.size(); ++g) {
      for (const int rank : cell.holders[g]) {
        holder_hosts[g].insert(host(rank));
        all.insert(rank);
      }
    }
    std::pair<std::size_t, std::size_t> best(~std::size_t{0}, 0);
    for (const int adder : all) {
      std::pair<std::size_t, std::size_t> cost(
          target_hosts.size() - target_hosts.count(host(adder)),
          cell.targets.size() - cell.targets.count(adder));
      for (std::size_t g = 0; g < cell.holders.size(); ++g) {
        cost.first += 1 - holder_hosts[g].count(host(adder));
        cost.second += 1 - cell.holders[g].count(adder);
      }
      best = std::min(best, cost);
    }
    fewest_.between_hosts += best.first * cell.count;
    add_load(all, best.second * cell.count);
  }

  const std::vector<int>& hosts_;
  Fewest fewest_;
};

}  // namespace

ReshardBound reshard_bound(const ReshardPlan& plan) {
  ReshardBound bound;
  Counter counter(plan.hosts);
  std::map<std::string, Fewest> known;
  Loads loads;
  for (const ReshardTensor& tensor : plan.tensors) {
    const auto [place, added] = known.try_emplace(pieces_key(tensor));
    if (added) {
      place->second = counter.run(sides_of(tensor), tensor.shape.size());
    }
    const Fewest& fewest = place->second;
    const std::size_t bytes = size_of(tensor.dtype);
    bound.bytes_between_hosts += fewest.between_hosts * bytes;
    bound.bytes_sent += fewest.in_all * bytes;
    for (const auto& [senders, elements] : fewest.loads) {
      loads[senders] += elements * bytes;
    }
  }
  bound.bytes_sent_by_busiest = least_busiest(loads);
  return bound;
}

}  // namespace unisono::parallel
