// Places experts on ranks by load: greedily, then by swaps.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>

#include "unisono/error.hpp"
#include "unisono/parallel/expert_balance.hpp"

namespace unisono {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

[[noreturn]] void refuse(const std::string& what, const std::string& advice) {
  throw Error(ErrorCode::usage, "balance: " + what + "\n" + advice);
}

std::string number(int value) {
  return std::to_string(value);
}

void check(std::span<const double> loads, const BalanceOptions& options, int physical_experts) {
  if (loads.empty() || options.ranks < 1 || options.groups < 1 || options.hosts < 1) {
    refuse("experts, ranks, groups and hosts must be 1 or more", "correct the BalanceOptions");
  }
  const int experts = static_cast<int>(loads.size());
  if (physical_experts < experts) {
    refuse(number(experts) + " experts do not fit on " + number(physical_experts) +
               " physical experts",
           "give one physical expert for each expert, and more for replicas");
  }
  if (physical_experts % options.ranks != 0) {
    refuse(number(options.ranks) + " ranks do not divide " + number(physical_experts) +
               " physical experts",
           "give a multiple of the number of ranks");
  }
  if (physical_experts / options.ranks > experts) {
    refuse("a rank has " + number(physical_experts / options.ranks) +
               " physical experts, but there are only " + number(experts) + " experts",
           "give fewer physical experts: a second replica on one rank has no use");
  }
  if (experts % options.groups != 0 || options.ranks % options.hosts != 0) {
    refuse("groups must divide the experts, and hosts the ranks", "correct the BalanceOptions");
  }
  for (std::size_t expert = 0; expert < loads.size(); ++expert) {
    if (!(loads[expert] >= 0) || !std::isfinite(loads[expert])) {
      refuse(
          "the load of expert " + std::to_string(expert) + " is " + std::to_string(loads[expert]),
          "give numbers of tokens");
    }
  }
}

// Returns 0 to n - 1, ordered by descending weight.
std::vector<int> by_weight(std::span<const double> weights) {
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return weights[at(a)] > weights[at(b)]; });
  return order;
}

// A physical expert with its share of the expert's load.
struct Share {
  int expert = 0;
  double load = 0;
};

// Creates one physical expert per expert. Then gives the remaining physical experts, one by one, to
// the expert with the greatest load per physical expert; each expert gets at most `most`.
std::vector<Share> replicate(std::span<const int> experts, std::span<const double> loads,
                             int physical_experts, int most) {
  std::vector<int> copies(experts.size(), 1);
  std::vector<int> physical_of(experts.size());
  std::iota(physical_of.begin(), physical_of.end(), 0);
  while (static_cast<int>(physical_of.size()) < physical_experts) {
    int heaviest = -1;
    const auto load = [&](int i) { return loads[at(experts[at(i)])] / copies[at(i)]; };
    for (int i = 0; i < static_cast<int>(experts.size()); ++i) {
      if (copies[at(i)] < most && (heaviest < 0 || load(i) > load(heaviest))) {
        heaviest = i;
      }
    }
    ++copies[at(heaviest)];
    physical_of.push_back(heaviest);
  }
  std::vector<Share> shares;
  for (const int i : physical_of) {
    const int expert = experts[at(i)];
    shares.push_back({.expert = expert, .load = loads[at(expert)] / copies[at(i)]});
  }
  return shares;
}

struct Bin {
  std::vector<Share> shares;
  double load = 0;
  bool holds(int expert) const {
    return std::any_of(shares.begin(), shares.end(),
                       [&](const Share& share) { return share.expert == expert; });
  }
  void add(const Share& share) {
    shares.push_back(share);
    load += share.load;
  }
  void recount() {
    load = std::accumulate(shares.begin(), shares.end(), 0.0,
                           [](double sum, const Share& share) { return sum + share.load; });
  }
};

// Places a share when all bins with room already hold its expert: a bin without the expert takes
// the share and passes another share to a bin with room. Such a bin exists because an expert has at
// most one share per bin.
void squeeze_in(const Share& share, std::vector<Bin>& bins, std::size_t size) {
  for (Bin& full : bins) {
    if (full.holds(share.expert)) {
      continue;
    }
    for (Bin& roomy : bins) {
      for (Share& given : full.shares) {
        if (roomy.shares.size() < size && !roomy.holds(given.expert)) {
          roomy.add(given);
          given = share;
          full.recount();
          return;
        }
      }
    }
  }
}

// Puts each share, heaviest first, into the least loaded bin that has room and does not hold its
// expert.
std::vector<Bin> pack(std::span<const Share> shares, int bin_count) {
  std::vector<double> weights;
  for (const Share& share : shares) {
    weights.push_back(share.load);
  }
  std::vector<Bin> bins(at(bin_count));
  const std::size_t size = shares.size() / bins.size();
  for (const int i : by_weight(weights)) {
    const Share& share = shares[at(i)];
    Bin* least = nullptr;
    for (Bin& bin : bins) {
      if (bin.shares.size() < size && !bin.holds(share.expert) &&
          (least == nullptr || bin.load < least->load)) {
        least = &bin;
      }
    }
    if (least != nullptr) {
      least->add(share);
    } else {
      squeeze_in(share, bins, size);
    }
  }
  return bins;
}

// Swaps a share of the fullest bin with a lighter share of another bin, choosing the swap that
// balances the two bins best. Returns false if no swap helps.
bool exchange_shares(std::vector<Bin>& bins) {
  const auto fullest = std::max_element(bins.begin(), bins.end(),
                                        [](const Bin& a, const Bin& b) { return a.load < b.load; });
  Share* given = nullptr;
  Share* taken = nullptr;
  Bin* partner = nullptr;
  double best = fullest->load * (1 - 1e-12);
  for (Bin& other : bins) {
    for (Share& mine : fullest->shares) {
      for (Share& theirs : other.shares) {
        const double change = mine.load - theirs.load;
        const double greater = std::max(fullest->load - change, other.load + change);
        if (&other != &*fullest && greater < best && !other.holds(mine.expert) &&
            !fullest->holds(theirs.expert)) {
          best = greater;
          given = &mine;
          taken = &theirs;
          partner = &other;
        }
      }
    }
  }
  if (partner == nullptr) {
    return false;
  }
  std::swap(*given, *taken);
  fullest->recount();
  partner->recount();
  return true;
}

// Measures imbalance: compares the greatest loads first, then the sums of squares.
struct Unevenness {
  double greatest = 0;
  double squares = 0;
  bool operator<(const Unevenness& other) const {
    if (std::abs(greatest - other.greatest) > 1e-12 * other.greatest) {
      return greatest < other.greatest;
    }
    return squares < other.squares * (1 - 1e-12);
  }
};

Unevenness unevenness(std::span<const double> loads) {
  Unevenness result;
  for (const double load : loads) {
    result.greatest = std::max(result.greatest, load);
    result.squares += load * load;
  }
  return result;
}

// Gives one physical expert of a replicated expert to another expert, choosing the change that
// balances the bins best. Returns false if no change helps.
bool exchange_replicas(std::vector<Bin>& bins, std::span<const double> loads) {
  std::vector<std::vector<std::size_t>> bins_of(loads.size());
  std::vector<double> now;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    now.push_back(bins[bin].load);
    for (const Share& share : bins[bin].shares) {
      bins_of[at(share.expert)].push_back(bin);
    }
  }
  struct Change {
    std::size_t bin = 0;
    Share* physical = nullptr;
    std::size_t expert = 0;
  } best;
  Unevenness least = unevenness(now);
  std::vector<double> then;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    for (Share& physical : bins[bin].shares) {
      const auto old = at(physical.expert);
      const auto copies = static_cast<double>(bins_of[old].size());
      for (std::size_t expert = 0; expert < loads.size() && copies > 1; ++expert) {
        if (bins[bin].holds(static_cast<int>(expert))) {
          continue;
        }
        const auto others = static_cast<double>(bins_of[expert].size());
        then = now;
        for (const std::size_t other : bins_of[old]) {
          then[other] += loads[old] / (copies - 1) - loads[old] / copies;
        }
        for (const std::size_t other : bins_of[expert]) {
          then[other] += loads[expert] / (others + 1) - loads[expert] / others;
        }
        then[bin] += loads[expert] / (others + 1) - loads[old] / (copies - 1);
        if (const Unevenness made = unevenness(then); made < least) {
          least = made;
          best = {.bin = bin, .physical = &physical, .expert = expert};
        }
      }
    }
  }
  if (best.physical == nullptr) {
    return false;
  }
  const auto old = at(best.physical->expert);
  const auto copies = static_cast<double>(bins_of[old].size());
  const auto others = static_cast<double>(bins_of[best.expert].size());
  *best.physical = {.expert = static_cast<int>(best.expert), .load = 0};
  for (Bin& bin : bins) {
    for (Share& share : bin.shares) {
      if (at(share.expert) == old) {
        share.load = loads[old] / (copies - 1);
      } else if (at(share.expert) == best.expert) {
        share.load = loads[best.expert] / (others + 1);
      }
    }
    bin.recount();
  }
  return true;
}

// Each swap balances the bins better, so the loop terminates; the bound limits the time for large
// problems.
void even_out(std::vector<Bin>& bins, std::span<const double> loads) {
  const std::size_t most = 64 * bins.size();
  for (std::size_t i = 0; i < most; ++i) {
    if (!exchange_shares(bins) && !exchange_replicas(bins, loads)) {
      return;
    }
  }
}

// Returns the experts of each host: whole groups, in placement order.
std::vector<std::vector<int>> experts_of_hosts(std::span<const double> loads,
                                               const BalanceOptions& options) {
  const int each = static_cast<int>(loads.size()) / options.groups;
  std::vector<Share> groups;
  for (int group = 0; group < options.groups; ++group) {
    const auto part = loads.subspan(at(group * each), at(each));
    groups.push_back({.expert = group, .load = std::accumulate(part.begin(), part.end(), 0.0)});
  }
  std::vector<std::vector<int>> experts;
  for (const Bin& host : pack(groups, options.hosts)) {
    auto& here = experts.emplace_back();
    for (const Share& group : host.shares) {
      for (int i = 0; i < each; ++i) {
        here.push_back(group.expert * each + i);
      }
    }
  }
  return experts;
}

}  // namespace

ExpertPlaces balance(std::span<const double> loads, const BalanceOptions& wanted) {
  BalanceOptions options = wanted;
  const int physical_experts =
      wanted.physical_experts == 0 ? static_cast<int>(loads.size()) : wanted.physical_experts;
  check(loads, options, physical_experts);
  const bool grouped =
      options.hosts > 1 && options.groups % options.hosts == 0 &&
      physical_experts / options.ranks <= static_cast<int>(loads.size()) / options.hosts;
  if (!grouped) {
    options.groups = options.hosts = 1;
  }
  const int ranks_of_host = options.ranks / options.hosts;
  ExpertPlaces places;
  for (const std::vector<int>& experts : experts_of_hosts(loads, options)) {
    const auto shares = replicate(experts, loads, physical_experts / options.hosts, ranks_of_host);
    std::vector<Bin> bins = pack(shares, ranks_of_host);
    if (!grouped) {
      even_out(bins, loads);
    }
    for (const Bin& bin : bins) {
      auto& here = places.experts_of_rank.emplace_back();
      for (const Share& share : bin.shares) {
        here.push_back(share.expert);
      }
      places.load_of_rank.push_back(bin.load);
    }
  }
  return places;
}

std::vector<ExpertMove> find_expert_moves(std::span<const std::vector<int>> before,
                                          std::span<const std::vector<int>> after) {
  if (before.size() != after.size()) {
    throw Error(ErrorCode::usage, "find_expert_moves: " + std::to_string(before.size()) +
                                      " ranks before, and " + std::to_string(after.size()) +
                                      " after\ngive placements for the same ranks");
  }
  const auto holds = [](const std::vector<int>& experts, int expert) {
    return std::find(experts.begin(), experts.end(), expert) != experts.end();
  };
  std::vector<int> sent(before.size(), 0);
  std::vector<ExpertMove> moves;
  for (std::size_t to = 0; to < after.size(); ++to) {
    for (const int expert : after[to]) {
      if (holds(before[to], expert)) {
        continue;
      }
      int from = -1;
      for (std::size_t rank = 0; rank < before.size(); ++rank) {
        if (holds(before[rank], expert) && (from < 0 || sent[rank] < sent[at(from)])) {
          from = static_cast<int>(rank);
        }
      }
      if (from < 0) {
        throw Error(ErrorCode::usage, "find_expert_moves: no rank held expert " +
                                          std::to_string(expert) +
                                          "\nload its weights from another source");
      }
      ++sent[at(from)];
      moves.push_back({.expert = expert, .from = from, .to = static_cast<int>(to)});
    }
  }
  return moves;
}

}  // namespace unisono
