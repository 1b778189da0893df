#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/collectives.h"
#include "disagreements.h"

namespace unisono::testing {
namespace {

bool is_plain(Collective collective) {
  return !is_v(collective) && collective != Collective::barrier;
}

// True if all ranks wait for all others.
bool joins_all(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter || collective == Collective::all_to_all ||
         collective == Collective::barrier;
}

// Returns the counts that other ranks must match: in all_to_all_v, all except the rank's own part.
std::vector<std::size_t> lists_of(const Case& one, int rank) {
  Shape shape = shape_of(one, rank);
  for (std::vector<std::size_t>* counts : {&shape.counts, &shape.recv_counts}) {
    if (one.collective == Collective::all_to_all_v) {
      counts->erase(counts->begin() + rank);
    }
  }
  std::vector<std::size_t> lists = shape.counts;
  lists.insert(lists.end(), shape.recv_counts.begin(), shape.recv_counts.end());
  return lists;
}

// Returns another list of counts: all entries differ, or two of them, with the same sum.
bool change_counts(Draw& draw, Made& made, int rank) {
  Case& one = made.one;
  const Shape shape = shape_of(one, rank);
  const int more = draw.rank_below(one.ranks);
  const bool pairs = one.collective == Collective::all_to_all_v;
  const int less = pairs ? -1 : (more + 1 + draw.rank_below(one.ranks - 1)) % one.ranks;
  const auto has = [&](int part) { return shape.counts[static_cast<std::size_t>(part)] != 0; };
  if (draw.one_in(2) && has(more) && more != rank && (pairs || has(less))) {
    made.more = more;
    made.less = less;
    return true;
  }
  const auto before = lists_of(one, rank);
  ++one.seed;
  return lists_of(one, rank) != before;
}

template <typename Value, typename Fits>
Value draw_other(Draw& draw, Value before, int values, const Fits& fits) {
  for (;;) {
    const auto value = static_cast<Value>(draw.rank_below(values));
    if (value != before && fits(value)) {
      return value;
    }
  }
}

void change_collective(Draw& draw, Case& one) {
  // Scans do not support avg.
  one.collective =
      draw_other(draw, one.collective, kCollectiveCount, [&one](Collective collective) {
        return !has_op(collective) || defined(collective, one.dtype, one.op);
      });
  one.op = has_op(one.collective) ? one.op : ReduceOp::sum;
  one.root = has_root(one.collective) ? one.root : 0;
  one.algorithm = "";
}

bool change_algorithm(Draw& draw, Case& one) {
  std::vector<std::string> names = algorithms_for(one);
  std::erase(names, one.algorithm);
  if (one.algorithm.empty() || names.empty()) {  // the library might choose the same algorithm
    return false;
  }
  one.algorithm = draw.of(names);
  return true;
}

// Returns the call of `rank` instead, or nothing if the calls cannot differ in this field.
std::optional<Made> other_than(Draw& draw, const Made& common, Field field, int rank) {
  Made made = common;
  Case& one = made.one;
  const auto allows = [&](ReduceOp op) { return defined(one.collective, one.dtype, op); };
  switch (field) {
    case Field::collective:
      change_collective(draw, one);
      return made;
    case Field::dtype:
      if (one.collective == Collective::barrier) {
        return std::nullopt;
      }
      one.dtype = draw_other(draw, one.dtype, kDtypeCount, [&](Dtype dtype) {
        return !has_op(one.collective) || defined(one.collective, dtype, one.op);
      });
      return made;
    case Field::op:
      one.op = draw_other(draw, one.op, kReduceOpCount, allows);
      return has_op(one.collective) ? std::optional(made) : std::nullopt;
    case Field::factor:
      made.factor = 2;
      return one.op == ReduceOp::premul_sum ? std::optional(made) : std::nullopt;
    case Field::count:
      one.count = draw.one_in(3) ? 0 : one.count + (draw.one_in(2) ? 1 : draw.below(40'000));
      return is_plain(one.collective) && one.count != common.one.count ? std::optional(made)
                                                                       : std::nullopt;
    case Field::root:
      one.root = (one.root + 1 + draw.rank_below(one.ranks - 1)) % one.ranks;
      return has_root(one.collective) ? std::optional(made) : std::nullopt;
    case Field::counts:
      return is_v(one.collective) && change_counts(draw, made, rank) ? std::optional(made)
                                                                     : std::nullopt;
    case Field::algorithm:
      return change_algorithm(draw, one) ? std::optional(made) : std::nullopt;
    case Field::max_error:
      made.max_error = draw.one_in(2) ? 4e-3 : 2e-2;
      return made;
    case Field::parts:
      made.cut = common.cut + 1 + draw.below(common.one.count - common.cut - 1);
      return made;
    case Field::bytes:
      one.count += 1 + draw.below(100'000);
      return made;
    default:
      return made;
  }
}

// Changes the common call so that it has the field.
void prepare(Draw& draw, Made& common, Field field) {
  Case& one = common.one;
  switch (field) {
    case Field::factor:
      one.collective =
          draw.of(std::vector{Collective::all_reduce, Collective::reduce,
                              Collective::reduce_scatter, Collective::reduce_scatter_v});
      one.algorithm = "";
      one.op = ReduceOp::premul_sum;
      one.dtype = one.dtype == Dtype::boolean ? Dtype::f32 : one.dtype;
      break;
    case Field::max_error:
      if (!is_plain(one.collective) || is_scan(one.collective)) {
        one.collective = Collective::all_reduce;
      }
      one.algorithm = "";
      one.dtype = Dtype::f32;
      one.op = ReduceOp::sum;
      one.count += 20'000;
      break;
    case Field::parts:
      one = {.collective = Collective::all_reduce, .ranks = one.ranks, .count = one.count + 3};
      common.cut = 1 + draw.below(one.count - 2);
      break;
    default:
      break;
  }
}

}  // namespace

bool Made::moves_nothing() const {
  for (int rank = 0; rank < one.ranks; ++rank) {
    const Shape shape = shape_of(one, rank);
    if (one.collective == Collective::barrier || shape.in + shape.out != 0) {
      return false;
    }
  }
  return true;
}

const Made& Disagreement::of(int rank) const {
  const auto found = others.find(rank);
  return found == others.end() ? common : found->second;
}

bool Disagreement::moves_nothing() const {
  return !is_message() && common.moves_nothing() &&
         std::all_of(others.begin(), others.end(),
                     [](const auto& other) { return other.second.moves_nothing(); });
}

bool Disagreement::has_registered_memory() const {
  for (int rank = 0; rank < members; ++rank) {
    if (as_made_by(rank, of(rank).one, own).memory != Memory::plain ||
        (then == Then::collective && as_made_by(rank, next, ~own).memory != Memory::plain)) {
      return true;
    }
  }
  return false;
}

bool Disagreement::ends_all_in_the_call() const {
  const auto joins = [](const Made& made) {
    return joins_all(made.one.collective) && !made.moves_nothing();
  };
  return !is_message() && field != Field::calls && joins(common) &&
         std::all_of(others.begin(), others.end(),
                     [&](const auto& other) { return joins(other.second); });
}

Disagreement draw_disagreement(std::uint64_t seed) {
  Draw draw(scramble(seed));
  for (;;) {
    Disagreement trial;
    trial.ranks = 2 + draw.rank_below(7);
    trial.members = draw.one_in(5) ? 2 + draw.rank_below(trial.ranks - 1) : trial.ranks;
    do {  // a wrong tag would end only at the time limit
      trial.field = static_cast<Field>(draw.below(kFields.size()));
    } while (trial.field == Field::tag && !draw.one_in(20));
    trial.common.one = draw_case(draw, trial.members);
    prepare(draw, trial.common, trial.field);
    const bool several = draw.one_in(3) && trial.field != Field::calls && !trial.is_message() &&
                         trial.common.one.collective != Collective::all_to_all_v;
    const int first = draw.rank_below(trial.members);
    bool differs = true;
    for (int i = 0; i < (several ? 1 + draw.rank_below(trial.members - 1) : 1); ++i) {
      const int rank = (first + i) % trial.members;
      const auto other = other_than(draw, trial.common, trial.field, rank);
      differs = differs && other.has_value();
      trial.others[rank] = other.value_or(trial.common);
    }
    if (trial.field == Field::nothing) {
      trial.others.clear();
    }
    // An additional barrier is equal to any later one.
    trial.then = trial.field == Field::calls ? Then::collective
                                             : static_cast<Then>(draw.below(kThens.size()));
    differs = differs && (trial.field != Field::calls || !trial.common.moves_nothing());
    trial.next = draw_case(draw, trial.members);
    trial.own = draw.next();
    if (differs) {
      return trial;
    }
  }
}

Case as_made_by(int rank, const Case& one, std::uint64_t own) {
  Draw draw(own + static_cast<std::uint64_t>(rank));
  Case made = one;
  draw_own_matter(draw, made);
  made.gaps = one.gaps && is_v(one.collective);  // the oracle requires equal gaps on all ranks
  return made;
}

std::string to_text(const Disagreement& trial) {
  const auto text = [](const Made& made) {
    return to_line(made.one) + (made.factor != 1 ? " factor" : "") +
           (made.max_error > 0 ? " max_error" : "") +
           (made.cut != 0 ? " cut=" + std::to_string(made.cut) : "") +
           (made.more >= 0 ? " more=" + std::to_string(made.more) : "") +
           (made.less >= 0 ? " less=" + std::to_string(made.less) : "");
  };
  std::string all = std::to_string(trial.ranks) + " ranks, a group of " +
                    std::to_string(trial.members) + ", another " +
                    kFields.at(static_cast<std::size_t>(trial.field)) +
                    "\n  all: " + text(trial.common) + "\n";
  for (const auto& [rank, made] : trial.others) {
    all += "  but rank " + std::to_string(rank) + ": " + text(made) + "\n";
  }
  all += std::string("  then ") + kThens.at(static_cast<std::size_t>(trial.then));
  return all + (trial.then == Then::collective ? ": " + to_line(trial.next) : "") + "\n";
}

}  // namespace unisono::testing
