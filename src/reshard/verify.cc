// Proves a plan.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/words.h"
#include "reshard/elements.h"
#include "reshard/pieces.h"
#include "reshard/sides.h"
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

class Proof {
 public:
  explicit Proof(const ReshardPlan& plan) : plan_(plan) {
    for (const ReshardTensor& tensor : plan.tensors) {
      auto [place, added] = known_.try_emplace(pieces_key(tensor));
      if (added) {
        place->second = sides_of(tensor);
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

  // Checks that the sender holds the elements.
  void check_source(std::size_t i) {
    const ReshardMove& move = plan_.moves[i];
    const ReshardSide& from = sides_[move.tensor]->from;
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

  // Checks that a sum has every summand once, in order.
  void check_sum(std::size_t i) {
    if (!plan_.moves[i].summand || (i > 0 && same_sum(i - 1, i))) {
      return;
    }
    const ReshardSide& from = sides_[plan_.moves[i].tensor]->from;
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
    const ReshardSide& to = sides_[move.tensor]->to;
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

  const ReshardPlan& plan_;
  std::map<std::string, ReshardSides> known_;
  std::vector<const ReshardSides*> sides_;
  std::map<std::pair<std::size_t, int>, std::vector<std::size_t>> arrived_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> verify_reshard(const ReshardPlan& plan) {
  return Proof(plan).run();
}

}  // namespace unisono::parallel
