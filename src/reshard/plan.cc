// Plans a reshard. Splits every piece of every tensor into units, and sends each unit from ranks
// that hold it to ranks that need it.
//
// Units with few possible senders are assigned first, each to the sender with the least load. Then
// all units are reassigned in rounds, with the loads of all other units known, as long as this
// reduces the load of the busiest rank. If the busiest rank still sends more than the lower bound,
// the planner tries other orders of sending units to their targets.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/words.h"
#include "reshard/elements.h"
#include "reshard/pieces.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

// Another hop costs as much as this load, and at least this part of the bound: messages wait for
// the messages of earlier hops.
constexpr std::size_t kLeastHopBytes = std::size_t{256} << 10U;
constexpr std::size_t kHopPart = 100;
// A rank's fair share consists of this many units, so that assigning units can balance the loads.
constexpr std::size_t kUnitsPerRank = 256;
constexpr std::size_t kLeastUnitBytes = std::size_t{64} << 10U;
constexpr int kMostRounds = 16;
constexpr std::size_t kExcess = 20;        // a plan may exceed the bound by 1/kExcess
constexpr std::size_t kLeastRelief = 512;  // a round reduces the greatest load by 1/kLeastRelief

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

// A rank that holds a unit's elements after move `after`, or from the beginning if hop is 0.
struct Holder {
  int rank = 0;
  int hop = 0;
  std::size_t after = 0;
};

struct Unit {
  std::size_t tensor = 0;
  const ReshardPiece* piece = nullptr;
  ElementRanges elements = {};
  std::size_t bytes = 0;
  std::size_t place = 0;  // within the piece
};

// Order in which the ranks that lack a unit receive it. A rank that receives a unit early can
// forward it.
enum class Order {
  ascending,     // hosts that lack it, by number: the last one never forwards it
  least_loaded,  // hosts that lack it, least loaded gateway first
  inner_first    // ranks on hosts that hold it, then as least_loaded
};

class Planner {
 public:
  // `hop_bytes`: the cost of one more hop.
  Planner(ReshardPlan& plan, std::size_t hop_bytes)
      : plan_(plan),
        hop_bytes_(hop_bytes),
        sent_(plan.ranks()),
        entered_(plan.ranks()),
        added_(plan.ranks()) {}

  void assign_all(const std::vector<Unit>& units) {
    charges_.resize(units.size());
    plan_.moves.clear();
    for (std::size_t i = 0; i < units.size(); ++i) {
      for (const Charge& charge : charges_[i]) {
        (this->*charge.loads)[index(charge.rank)] -= units[i].bytes;
      }
      charges_[i].clear();
      open_ = &charges_[i];
      assign(units[i]);
    }
  }

  void set_order(Order order) { order_ = order; }

  std::size_t most_sent() const {
    return sent_.empty() ? 0 : *std::max_element(sent_.begin(), sent_.end());
  }

 private:
  using Bytes = std::vector<std::size_t>;  // by rank
  // A unit's contribution to a load.
  struct Charge {
    Bytes Planner::* loads = nullptr;
    int rank = 0;
  };

  void assign(const Unit& unit) {
    const auto& groups = unit.piece->holders;
    std::vector<Holder> holders;
    if (groups.size() > 1) {
      holders.push_back(add_up(unit));
    } else {
      for (const int rank : groups.front()) {
        holders.push_back({.rank = rank});
      }
    }
    spread(unit, std::move(holders));
  }

  void charge(Bytes Planner::* loads, int rank, const Unit& unit) {
    (this->*loads)[index(rank)] += unit.bytes;
    open_->push_back({.loads = loads, .rank = rank});
  }

  int host(int rank) const { return plan_.hosts[index(rank)]; }

  std::size_t move(const Unit& unit, const Holder& from, int to, bool summand = false) {
    plan_.moves.push_back({.tensor = unit.tensor,
                           .from = from.rank,
                           .to = to,
                           .summand = summand,
                           .hop = from.hop,
                           .after = from.after,
                           .elements = unit.elements,
                           .bytes = unit.bytes});
    if (from.rank != to) {
      charge(&Planner::sent_, from.rank, unit);
    }
    return plan_.moves.size() - 1;
  }

  // Returns the holder with the least load, on `to_host` if a holder is there.
  const Holder& sender(const std::vector<Holder>& holders, int to_host) const {
    const bool near = std::any_of(holders.begin(), holders.end(), [&](const Holder& holder) {
      return host(holder.rank) == to_host;
    });
    const Holder* best = nullptr;
    std::size_t least = 0;
    for (const Holder& holder : holders) {
      if (near && host(holder.rank) != to_host) {
        continue;
      }
      const std::size_t load =
          sent_[index(holder.rank)] + static_cast<std::size_t>(holder.hop) * hop_bytes_;
      if (best == nullptr || load < least) {
        best = &holder;
        least = load;
      }
    }
    return *best;
  }

  // Sends a unit to all its targets, entering each host that lacks it once.
  void spread(const Unit& unit, std::vector<Holder> holders) {
    std::map<int, std::vector<int>> lacking;  // by host
    std::set<int> hosts;                      // hosts that hold the unit
    const std::size_t first = holders.size();
    for (std::size_t i = 0; i < first; ++i) {
      hosts.insert(host(holders[i].rank));
    }
    for (const int target : unit.piece->targets) {
      const auto own = std::find_if(holders.begin(), holders.end(),
                                    [&](const Holder& holder) { return holder.rank == target; });
      if (own != holders.end()) {
        move(unit, *own, target);
      } else {
        lacking[host(target)].push_back(target);
      }
    }
    const auto send = [&](int to) {
      const Holder from = sender(holders, host(to));
      holders.push_back({.rank = to, .hop = from.hop + 1, .after = move(unit, from, to)});
    };
    std::vector<int> gateways;
    for (auto& [on, targets] : lacking) {
      if (!hosts.contains(on)) {
        // Spreads the load, because each rank of a host often has its own network port.
        const auto gateway = std::min_element(targets.begin(), targets.end(), [&](int a, int b) {
          return std::pair(entered_[index(a)], sent_[index(a)]) <
                 std::pair(entered_[index(b)], sent_[index(b)]);
        });
        charge(&Planner::entered_, *gateway, unit);
        gateways.push_back(*gateway);
        targets.erase(gateway);
      }
    }
    const auto serve = [&](std::vector<int>& targets, bool by_load) {
      if (by_load) {
        std::stable_sort(targets.begin(), targets.end(),
                         [&](int a, int b) { return sent_[index(a)] < sent_[index(b)]; });
      }
      std::for_each(targets.begin(), targets.end(), send);
      targets.clear();
    };
    if (order_ == Order::inner_first) {
      for (const int on : hosts) {
        serve(lacking[on], true);
      }
    }
    serve(gateways, order_ != Order::ascending);
    for (auto& [on, targets] : lacking) {
      serve(targets, true);
    }
  }

  // Returns the ranks on which computing a piece's sum costs the fewest bytes between hosts, then
  // the fewest bytes in total.
  const std::vector<int>& adders(const ReshardPiece& piece) {
    std::vector<int>& best = adders_[&piece];
    if (!best.empty()) {
      return best;
    }
    std::set<int> candidates(piece.targets.begin(), piece.targets.end());
    std::set<int> target_hosts;
    std::vector<std::set<int>> group_hosts;
    for (const int target : piece.targets) {
      target_hosts.insert(host(target));
    }
    for (const auto& group : piece.holders) {
      group_hosts.emplace_back();
      for (const int rank : group) {
        candidates.insert(rank);
        group_hosts.back().insert(host(rank));
      }
    }
    std::pair<std::size_t, std::size_t> least(std::numeric_limits<std::size_t>::max(), 0);
    for (const int rank : candidates) {
      std::pair<std::size_t, std::size_t> cost(
          target_hosts.size() - target_hosts.count(host(rank)),
          piece.targets.size() - static_cast<std::size_t>(
                                     std::count(piece.targets.begin(), piece.targets.end(), rank)));
      for (std::size_t g = 0; g < piece.holders.size(); ++g) {
        const auto& group = piece.holders[g];
        cost.first += group_hosts[g].contains(host(rank)) ? 0U : 1U;
        cost.second += std::find(group.begin(), group.end(), rank) == group.end() ? 1U : 0U;
      }
      if (cost < least) {
        least = cost;
        best.clear();
      }
      if (cost == least) {
        best.push_back(rank);
      }
    }
    return best;
  }

  // Sends all summands to one rank and returns it.
  Holder add_up(const Unit& unit) {
    const std::vector<int>& ranks = adders(*unit.piece);
    const int adder = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
      return added_[index(a)] < added_[index(b)];
    });
    charge(&Planner::added_, adder, unit);
    std::size_t last = 0;
    for (const auto& group : unit.piece->holders) {
      std::vector<Holder> holders;
      for (const int rank : group) {
        if (rank == adder) {
          holders = {{.rank = rank}};
          break;
        }
        holders.push_back({.rank = rank});
      }
      last = move(unit, sender(holders, host(adder)), adder, true);
    }
    return {.rank = adder, .hop = 1, .after = last};
  }

  ReshardPlan& plan_;
  std::size_t hop_bytes_;
  Bytes sent_;                                // bytes sent to other ranks
  Bytes entered_;                             // bytes received from other hosts
  Bytes added_;                               // bytes of sums computed
  std::vector<std::vector<Charge>> charges_;  // per unit
  std::vector<Charge>* open_ = nullptr;       // charges of the current unit
  std::map<const ReshardPiece*, std::vector<int>> adders_;
  Order order_ = Order::ascending;
};

void check_tensor(const ReshardTensor& tensor, std::size_t ranks) {
  if (tensor.shape.size() > kMostDims) {
    throw Error(ErrorCode::usage, std::to_string(tensor.shape.size()) +
                                      " dimensions\na tensor has at most " +
                                      std::to_string(kMostDims));
  }
  std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / size_of(tensor.dtype);
  for (const std::size_t size : tensor.shape) {
    most = size == 0 ? most : most / size;
  }
  if (most == 0) {
    throw Error(ErrorCode::usage,
                "more bytes than 63 bits count\ngive the shape of a tensor that exists");
  }
  check_layout(tensor.from, tensor.shape, static_cast<int>(ranks));
  check_layout(tensor.to, tensor.shape, static_cast<int>(ranks));
  for (const AxisPlacement& how : tensor.to.placements) {
    if (how.placement.kind == Placement::Kind::partial) {
      throw Error(ErrorCode::usage, "the target's axis " + how.axis + " is " +
                                        to_string(how.placement) +
                                        "\na target replicates or shards");
    }
  }
  static_cast<void>(summation_of(tensor.from));
  const std::vector<std::size_t> summands = summands_of(tensor.from);
  const std::size_t most_summand = *std::max_element(summands.begin(), summands.end());
  if (most_summand >= kMostSummands) {
    throw Error(ErrorCode::usage, std::to_string(most_summand + 1) + " summands\nat most " +
                                      std::to_string(kMostSummands) + " are added at once");
  }
}

// Rethrows an error with the tensor's name.
[[noreturn]] void rethrow_named(const Error& error, const std::string& name) {
  throw Error(error.code(),
              "reshard: tensor " + in_quotes(name) + ": " + std::string(error.message()));
}

using PieceMap = std::map<std::string, std::vector<ReshardPiece>>;

// Returns the pieces of each tensor. Tensors with the same dtype, shape and layouts share their
// pieces.
std::vector<const std::vector<ReshardPiece>*> all_pieces(const ReshardPlan& plan, PieceMap& known) {
  std::vector<const std::vector<ReshardPiece>*> all;
  std::set<std::string_view> names;
  for (const ReshardTensor& tensor : plan.tensors) {
    try {
      if (!names.insert(tensor.name).second) {
        throw Error(ErrorCode::usage, "the name appears twice\ngive each tensor its own");
      }
      auto [place, added] = known.try_emplace(std::to_string(static_cast<int>(tensor.dtype)) + "|" +
                                              pieces_key(tensor));
      if (added) {
        check_tensor(tensor, plan.ranks());
        place->second = pieces_of(tensor);
      }
      all.push_back(&place->second);
    } catch (const Error& error) {
      rethrow_named(error, tensor.name);
    }
  }
  return all;
}

std::size_t senders_of(const ReshardPiece& piece) {
  std::size_t most = 0;
  for (const auto& holders : piece.holders) {
    most = std::max(most, holders.size());
  }
  return most;
}

}  // namespace

std::size_t ReshardPlan::bytes_sent() const {
  std::size_t bytes = 0;
  for (const ReshardMove& move : moves) {
    bytes += move.from == move.to ? 0 : move.bytes;
  }
  return bytes;
}

std::size_t ReshardPlan::bytes_between_hosts() const {
  std::size_t bytes = 0;
  for (const ReshardMove& move : moves) {
    bytes += hosts[index(move.from)] == hosts[index(move.to)] ? 0 : move.bytes;
  }
  return bytes;
}

std::vector<std::size_t> ReshardPlan::bytes_sent_by_rank() const {
  std::vector<std::size_t> bytes(ranks(), 0);
  for (const ReshardMove& move : moves) {
    bytes[index(move.from)] += move.from == move.to ? 0 : move.bytes;
  }
  return bytes;
}

ReshardPlan plan_reshard(std::vector<ReshardTensor> tensors, std::vector<int> hosts) {
  ReshardPlan plan{.tensors = std::move(tensors), .hosts = std::move(hosts)};
  PieceMap known;
  const auto pieces = all_pieces(plan, known);
  std::size_t total = 0;
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    for (const ReshardPiece& piece : *pieces[t]) {
      total += count_of(piece.elements) * size_of(plan.tensors[t].dtype);
    }
  }
  const std::size_t unit_bytes =
      std::max(kLeastUnitBytes, total / kUnitsPerRank / std::max<std::size_t>(plan.ranks(), 1));
  std::vector<Unit> units;
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    const std::size_t bytes = size_of(plan.tensors[t].dtype);
    for (const ReshardPiece& piece : *pieces[t]) {
      std::size_t place = 0;
      for (ElementRanges& elements : cut(piece.elements, unit_bytes / bytes)) {
        const std::size_t count = count_of(elements);
        units.push_back({.tensor = t,
                         .piece = &piece,
                         .elements = std::move(elements),
                         .bytes = count * bytes,
                         .place = place++});
      }
    }
  }
  // The pieces of a tensor take turns: their holders then fill up together.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    return std::tuple(senders_of(*a.piece), a.tensor, a.place) <
           std::tuple(senders_of(*b.piece), b.tensor, b.place);
  });
  const std::size_t bound = reshard_bound(plan).bytes_sent_by_busiest;
  Planner planner(plan, std::max(kLeastHopBytes, bound / kHopPart));
  std::vector<ReshardMove> best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  const auto settle = [&] {
    std::size_t before = std::numeric_limits<std::size_t>::max();
    for (int round = 0; round < kMostRounds; ++round) {
      planner.assign_all(units);
      const std::size_t most = planner.most_sent();
      if (most < least) {
        least = most;
        best = plan.moves;
      }
      if (most + most / kLeastRelief >= before) {
        break;
      }
      before = most;
    }
  };
  for (const Order order : {Order::ascending, Order::least_loaded, Order::inner_first}) {
    planner.set_order(order);
    settle();
    if (least <= bound + bound / kExcess) {
      break;
    }
  }
  plan.moves = std::move(best);
  return plan;
}

}  // namespace unisono::parallel
