// Proves a plan, and computes the fewest bytes from the layouts alone.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/words.h"
#include "reshard/elements.h"
#include "reshard/pieces.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

constexpr std::size_t kMostFindings = 100;

bool within(const ElementRanges& inner, const ElementRanges& outer) {
  for (std::size_t dim = 0; dim < inner.size(); ++dim) {
    if (common(inner[dim], outer[dim]) != inner[dim]) {
      return false;
    }
  }
  return true;
}

bool overlap(const ElementRanges& a, const ElementRanges& b) {
  for (std::size_t dim = 0; dim < a.size(); ++dim) {
    if (common(a[dim], b[dim]).empty()) {
      return false;
    }
  }
  return true;
}

// The elements of each rank of a layout.
struct Side {
  std::map<int, ElementRanges> elements = {};
  std::map<int, std::size_t> summand = {};
  std::size_t summands = 1;
};

Side side_of(const MeshLayout& layout, const std::vector<std::size_t>& shape) {
  Side side;
  const std::vector<std::size_t> summands = summands_of(layout);
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    const int rank = layout.rank_at(position);
    side.elements.emplace(rank, elements_at(layout, shape, position));
    side.summand.emplace(rank, summands[static_cast<std::size_t>(position)]);
    side.summands = std::max(side.summands, summands[static_cast<std::size_t>(position)] + 1);
  }
  return side;
}

struct Sides {
  Side from;
  Side to;
};

class Proof {
 public:
  explicit Proof(const ReshardPlan& plan) : plan_(plan) {
    for (const ReshardTensor& tensor : plan.tensors) {
      auto [place, added] = known_.try_emplace(pieces_key(tensor));
      if (added) {
        place->second = {side_of(tensor.from, tensor.shape), side_of(tensor.to, tensor.shape)};
      }
      sides_.push_back(&place->second);
    }
  }

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < plan_.moves.size() && !full(); ++i) {
      if (check_form(i)) {
        check_source(i);
        check_sum(i);
        note_target(i);
      }
    }
    check_targets();
    return std::move(findings_);
  }

  ReshardBound bound() const {
    ReshardBound bound;
    std::map<const Sides*, std::pair<std::size_t, std::size_t>> counts;
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      const auto [place, added] = counts.try_emplace(sides_[t]);
      if (added) {
        place->second = fewest(*sides_[t], plan_.tensors[t].shape.size());
      }
      const std::size_t bytes = size_of(plan_.tensors[t].dtype);
      bound.bytes_between_hosts += place->second.first * bytes;
      bound.bytes_sent += place->second.second * bytes;
    }
    return bound;
  }

 private:
  bool full() const { return findings_.size() >= kMostFindings; }
  std::string named(std::size_t i) const {
    const ReshardMove& move = plan_.moves[i];
    return "move " + std::to_string(i) + " of " + in_quotes(plan_.tensors[move.tensor].name) +
           " from rank " + std::to_string(move.from) + " to rank " + std::to_string(move.to);
  }
  void find(const std::string& what) {
    if (!full()) {
      findings_.push_back(what);
    }
  }

  bool check_form(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    const auto ranks = static_cast<int>(plan_.ranks());
    if (move.tensor >= plan_.tensors.size()) {
      find("move " + std::to_string(i) + " names tensor " + std::to_string(move.tensor) +
           ", which does not exist");
      return false;
    }
    if (move.from < 0 || move.from >= ranks || move.to < 0 || move.to >= ranks) {
      find(named(i) + " names a rank that does not exist");
      return false;
    }
    const ReshardTensor& tensor = plan_.tensors[move.tensor];
    if (move.elements.size() != tensor.shape.size() ||
        move.bytes != count_of(move.elements) * size_of(tensor.dtype)) {
      find(named(i) + " has another number of dimensions or bytes than its elements");
      return false;
    }
    return true;
  }

  // The elements are where they are read.
  void check_source(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    const Side& from = sides_[move.tensor]->from;
    if (move.hop == 0) {
      const auto held = from.elements.find(move.from);
      if (held == from.elements.end() || !within(move.elements, held->second)) {
        find(named(i) + " reads elements that its source does not have");
      } else if (!move.summand && from.summands > 1) {
        find(named(i) + " takes a summand for the sum");
      }
      return;
    }
    if (move.summand) {
      find(named(i) + " passes on a summand");
    } else if (move.after >= i || plan_.moves[move.after].tensor != move.tensor ||
               plan_.moves[move.after].to != move.from ||
               plan_.moves[move.after].hop != move.hop - 1 ||
               plan_.moves[move.after].elements != move.elements) {
      find(named(i) + " reads what has not arrived");
    } else if (from.summands > 1 && move.hop == 1 && !plan_.moves[move.after].summand) {
      find(named(i) + " passes on a summand");
    } else if (plan_.moves[move.after].summand && !ends_sum(move.after)) {
      find(named(i) + " reads a sum that is not complete");
    }
  }

  bool same_sum(std::size_t a, std::size_t b) const {
    const ReshardMove& one = plan_.moves[a];
    const ReshardMove& other = plan_.moves[b];
    return one.summand && other.summand && one.tensor == other.tensor && one.to == other.to &&
           one.elements == other.elements;
  }
  bool ends_sum(std::size_t i) const { return i + 1 == plan_.moves.size() || !same_sum(i, i + 1); }

  // A sum has every summand once, in order.
  void check_sum(std::size_t i) {
    if (!plan_.moves[i].summand || (i > 0 && same_sum(i - 1, i))) {
      return;
    }
    const Side& from = sides_[plan_.moves[i].tensor]->from;
    std::size_t next = 0;
    for (std::size_t k = i; k < plan_.moves.size() && same_sum(i, k); ++k, ++next) {
      const auto summand = from.summand.find(plan_.moves[k].from);
      if (summand == from.summand.end() || summand->second != next) {
        find(named(k) + " is not summand " + std::to_string(next) + " of its sum");
        return;
      }
    }
    if (next != from.summands) {
      find(named(i) + " begins a sum of " + std::to_string(next) + " summands instead of " +
           std::to_string(from.summands));
    }
  }

  void note_target(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    if (move.summand) {
      return;
    }
    const Side& to = sides_[move.tensor]->to;
    const auto wanted = to.elements.find(move.to);
    if (wanted == to.elements.end() || !within(move.elements, wanted->second)) {
      find(named(i) + " brings elements that its target does not need");
    } else {
      arrived_[{move.tensor, move.to}].push_back(i);
    }
  }

  void check_targets() {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      for (const auto& [rank, wanted] : sides_[t]->to.elements) {
        const std::vector<std::size_t>& moves = arrived_[{t, rank}];
        std::size_t count = 0;
        for (std::size_t k = 0; k < moves.size() && !full(); ++k) {
          count += count_of(plan_.moves[moves[k]].elements);
          for (std::size_t j = 0; j < k; ++j) {
            if (overlap(plan_.moves[moves[j]].elements, plan_.moves[moves[k]].elements)) {
              find(named(moves[k]) + " writes elements that move " + std::to_string(moves[j]) +
                   " writes too");
              break;
            }
          }
        }
        if (count != count_of(wanted)) {
          find("rank " + std::to_string(rank) + " receives " + std::to_string(count) + " of " +
               std::to_string(count_of(wanted)) + " elements of " +
               in_quotes(plan_.tensors[t].name));
        }
      }
    }
  }

  // Returns the fewest elements between hosts, and the fewest in all among plans with these.
  std::pair<std::size_t, std::size_t> fewest(const Sides& sides, std::size_t dims) const {
    // Cells between all bounds of all ranks.
    ElementRanges cells(dims);
    for (std::size_t dim = 0; dim < dims; ++dim) {
      std::set<std::size_t> bounds;
      for (const Side* side : {&sides.from, &sides.to}) {
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
    std::pair<std::size_t, std::size_t> sum;
    for_each_box(cells, [&](const std::vector<Range>& box) {
      std::size_t count = 1;
      ElementRanges cell;
      for (const Range& range : box) {
        count *= range.count;
        cell.push_back({range});
      }
      const auto [between, in_all] = fewest_copies(sides, cell);
      sum.first += between * count;
      sum.second += in_all * count;
    });
    return sum;
  }

  std::pair<std::size_t, std::size_t> fewest_copies(const Sides& sides,
                                                    const ElementRanges& cell) const {
    const auto host = [&](int rank) { return plan_.hosts[static_cast<std::size_t>(rank)]; };
    std::set<int> targets;
    std::set<int> target_hosts;
    std::vector<std::set<int>> ranks(sides.from.summands);
    std::vector<std::set<int>> hosts(sides.from.summands);
    std::set<int> candidates;
    for (const auto& [rank, elements] : sides.to.elements) {
      if (overlap(cell, elements)) {
        targets.insert(rank);
        target_hosts.insert(host(rank));
        candidates.insert(rank);
      }
    }
    for (const auto& [rank, elements] : sides.from.elements) {
      if (overlap(cell, elements)) {
        ranks[sides.from.summand.at(rank)].insert(rank);
        hosts[sides.from.summand.at(rank)].insert(host(rank));
        candidates.insert(rank);
      }
    }
    if (targets.empty()) {
      return {0, 0};
    }
    if (ranks.size() == 1) {
      const auto lacking = [](const std::set<int>& need, const std::set<int>& have) {
        return static_cast<std::size_t>(
            std::count_if(need.begin(), need.end(), [&](int one) { return !have.contains(one); }));
      };
      return {lacking(target_hosts, hosts[0]), lacking(targets, ranks[0])};
    }
    std::pair<std::size_t, std::size_t> best(~std::size_t{0}, 0);
    for (const int adder : candidates) {
      std::pair<std::size_t, std::size_t> cost(
          target_hosts.size() - target_hosts.count(host(adder)),
          targets.size() - targets.count(adder));
      for (std::size_t g = 0; g < ranks.size(); ++g) {
        cost.first += 1 - hosts[g].count(host(adder));
        cost.second += 1 - ranks[g].count(adder);
      }
      best = std::min(best, cost);
    }
    return best;
  }

  const ReshardPlan& plan_;
  std::map<std::string, Sides> known_;
  std::vector<const Sides*> sides_;
  std::map<std::pair<std::size_t, int>, std::vector<std::size_t>> arrived_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> verify_reshard(const ReshardPlan& plan, ReshardBound* bound) {
  Proof proof(plan);
  if (bound != nullptr) {
    *bound = proof.bound();
  }
  return proof.run();
}

}  // namespace unisono::parallel
